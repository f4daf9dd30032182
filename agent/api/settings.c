/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a stream, from the program's fields and the environment, and their checks. */
#include "agent/api/private.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/faults.h"
#include "agent/host/limits.h"
#include "agent/net/dial.h"
#include "agent/net/pems.h"
#include "agent/net/tls.h"
#include "base/text/cert_path.h"

enum { NAME_MAX_BYTES = 64 };

int ta__fault(int error, const char *fmt, ...) {
  va_list args;

  va_start(args, fmt);
  ta_fault_say(fmt, args);
  va_end(args);
  return error;
}

int ta_forward_fault(int error, const char *text) {
  return ta__fault(error, "%s", text);
}

static bool is_name(const char *text) {
  size_t n = strlen(text);

  for (size_t i = 0; i < n; i++)
    if (!isalnum((unsigned char)text[i]) && strchr("._:-", text[i]) == NULL) return false;
  return n >= 1 && n <= NAME_MAX_BYTES;
}

static char *default_instance(void) {
  char host[NAME_MAX_BYTES - 11], *text;

  if (gethostname(host, sizeof host) != 0) strcpy(host, "host");
  host[sizeof host - 1] = 0;
  for (char *c = host; *c != 0; c++)
    if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL) *c = '-';
  return asprintf(&text, "%s:%ld", host, (long)getpid()) < 0 ? NULL : text;
}

const char *ta__or_env(const char *value, const char *name, bool use_env) {
  return value != NULL || !use_env ? value : secure_getenv(name);
}

/* Texts, from a field, the folder or the default. *error keeps the first error. */

static const char *const text_names[TEXTS] = { "server",  "ca",       "cert", "key",
                                               "service", "instance", "crl" };
static const char *const variables[TEXTS] = { "SERVER",  "CERTS",    "CERTS", "CERTS",
                                              "SERVICE", "INSTANCE", "CRL" };

static void take_text(struct ta_forward *f, int text, const char *value, int *error) {
  if (*error != TA_OK) return;
  if (value == NULL) {
    *error = ta__fault(TA_E_CONFIG, "%s is not given (TRACEAGENT_%s)", text_names[text],
                       variables[text]);
    return;
  }
  f->text[text] = strdup(value);
  if (f->text[text] == NULL) *error = TA_E_NOMEM;
}

static void take_path(struct ta_forward *f, int text, const char *file, const char *folder,
                      enum tb_cert_file which, int *error) {
  char path[PATH_MAX];
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (file != NULL || folder == NULL || *error != TA_OK)
    take_text(f, text, file, error);
  else if (tb_cert_path(folder, "agent", which, &diag, path) == TB_OK)
    take_text(f, text, path, error);
  else
    *error = ta__fault(TA_E_CERT, "%s", diag.text);
}

static void take_instance(struct ta_forward *f, const char *value, int *error) {
  if (value != NULL) {
    take_text(f, TEXT_INSTANCE, value, error);
    return;
  }
  if (*error != TA_OK) return;
  f->text[TEXT_INSTANCE] = default_instance();
  if (f->text[TEXT_INSTANCE] == NULL) *error = TA_E_NOMEM;
}

struct ta_forward_config ta_forward_config_of(const struct ta_forward_config *config) {
  struct ta_forward_config all = { 0 };
  size_t first =
      offsetof(struct ta_forward_config, record_ms) + sizeof all.record_ms; /* in 0.1.0 */

  all.size = sizeof all;
  if (config == NULL) return all;
  size_t size = config->size == 0 ? first : config->size;
  memcpy(&all, config, size < sizeof all ? size : sizeof all);
  all.size = sizeof all;
  return all;
}

int ta__forward_take_config(struct ta_forward *f, const struct ta_forward_config *config,
                            bool use_env) {
  const char *certs = ta__or_env(config->certs, "TRACEAGENT_CERTS", use_env);
  const char *crl =
      secure_getenv("TRACEAGENT_CRL"); /* even without use_env: tracectl send obeys it, too */
  struct tb_diag diag;
  int error = TA_OK;

  take_text(f, TEXT_SERVER, ta__or_env(config->server, "TRACEAGENT_SERVER", use_env), &error);
  take_path(f, TEXT_CA, config->ca, certs, TB_CERT_CA, &error);
  take_path(f, TEXT_CERT, config->cert, certs, TB_CERT_CHAIN, &error);
  take_path(f, TEXT_KEY, config->key, certs, TB_CERT_KEY, &error);
  if (crl != NULL && *crl != 0) take_text(f, TEXT_CRL, crl, &error);
  take_text(f, TEXT_SERVICE, ta__or_env(config->service, "TRACEAGENT_SERVICE", use_env), &error);
  take_instance(f, ta__or_env(config->instance, "TRACEAGENT_INSTANCE", use_env), &error);
  if (error != TA_OK) return error;
  for (int i = TEXT_SERVICE; i <= TEXT_INSTANCE; i++)
    if (!is_name(f->text[i]))
      return ta__fault(TA_E_CONFIG, "%s \"%.80s\" is not 1 to 64 of A-Z a-z 0-9 . _ : -",
                       text_names[i], f->text[i]);
  if (config->spool_bytes != 0 && config->spool_bytes < TA_SPOOL_BYTES_MIN)
    return ta__fault(TA_E_CONFIG, "spool_bytes is below %d", TA_SPOOL_BYTES_MIN);
  if (config->spool_dir_bytes != 0 && config->spool_dir_bytes < 2 * TA_SPOOL_BYTES_MIN)
    return ta__fault(TA_E_CONFIG, "spool_dir_bytes is below %d", 2 * TA_SPOOL_BYTES_MIN);
  tb_diag_clear(&diag);
  if (ta_dial_check(f->text[TEXT_SERVER], &diag) != TB_OK)
    return ta__fault(TA_E_CONFIG, "server: %s", diag.text);
  return TA_OK;
}

int ta__forward_take_record(const struct ta_forward_config *config, bool use_env,
                            uint64_t *out_ms) {
  const char *text = ta__or_env(NULL, "TRACEAGENT_RECORD_MS", use_env && config->record_ms == 0);
  char *end = NULL;

  *out_ms = config->record_ms;
  if (text != NULL && *text != 0) {
    errno = 0;
    *out_ms = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end != 0 || errno != 0)
      return ta__fault(TA_E_CONFIG, "TRACEAGENT_RECORD_MS: \"%.40s\" is not a number", text);
  }
  if (*out_ms > RECORD_MS_MAX)
    return ta__fault(TA_E_CONFIG, "record_ms is above %d, an hour", RECORD_MS_MAX);
  return TA_OK;
}

/* Not checked for our own tools, which may use up their resources. An agent inside another program may not. */
int ta__forward_check_limits(uint64_t spool_bytes, bool is_guest) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  return !is_guest || ta_limits_check(spool_bytes, &diag) == TB_OK
             ? TA_OK
             : ta__fault(TA_E_CONFIG, "%s", diag.text);
}

/* Checked at open, so that bad files fail the call and not some later status. */
int ta__forward_check_files(const struct ta_client_config *client) {
  struct ta_tls *tls = NULL;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = ta_tls_new(&client->files, "", &diag, &tls);
  ta_tls_free(tls);
  return rc == TB_OK ? TA_OK : ta__fault(rc == TB_NOMEM ? TA_E_NOMEM : TA_E_CERT, "%s", diag.text);
}

static bool is_same(const char *a, const char *b) {
  return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Checks without OpenSSL that the files can be read, and keeps their contents: later the program may have lost the
 * right to read them. A forked child uses its parent's copy. */
int ta__forward_keep_files(struct ta_client_config *client) {
  static struct ta_pems kept;
  static char *of[TA_PEMS];
  struct ta_pems fresh;
  struct tb_diag diag;
  bool same = true;

  client->files.kept = &kept;
  for (int i = 0; i < TA_PEMS; i++) same &= is_same(of[i], client->files.path[i]);
  tb_diag_clear(&diag);
  tb_rc rc = ta_pems_read(client->files.path, &diag, &fresh);
  if (rc != TB_OK && same) return TA_OK;
  if (rc != TB_OK) return ta__fault(rc == TB_NOMEM ? TA_E_NOMEM : TA_E_CERT, "%s", diag.text);
  ta_pems_free(&kept);
  kept = fresh;
  for (int i = 0; i < TA_PEMS && !same; i++) {
    free(of[i]);
    of[i] = NULL;
    if (client->files.path[i] == NULL) continue;
    if ((of[i] = strdup(client->files.path[i])) == NULL) return TA_E_NOMEM;
  }
  return TA_OK;
}
