/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/small_file.h"
#include "base/text/cert_path.h"

enum { SETTINGS = 6, LINE_BYTES = 2 * PATH_MAX };
enum setting { SERVER, CERTS, TLS_CA, TLS_CERT, TLS_KEY, TLS_CRL };

struct setting_name {
  const char *key, *environment, *fallback;
};
static const struct setting_name names[SETTINGS] = {
  [SERVER] = { "server", "TRACECTL_SERVER", NULL },
  [CERTS] = { "certs", "TRACECTL_CERTS", "TRACEAGENT_CERTS" },
  [TLS_CA] = { "tls-ca", "TRACECTL_TLS_CA", NULL },
  [TLS_CERT] = { "tls-cert", "TRACECTL_TLS_CERT", NULL },
  [TLS_KEY] = { "tls-key", "TRACECTL_TLS_KEY", NULL },
  [TLS_CRL] = { "tls-crl", "TRACECTL_TLS_CRL", NULL },
};

/* Settings of one source; NULL or "": not set there. */
struct source {
  const char *text[SETTINGS];
};

static bool config_path(char out[PATH_MAX]) {
  const char *named = getenv("TRACECTL_CONFIG"), *xdg = getenv("XDG_CONFIG_HOME");
  const char *home = getenv("HOME");

  if (named != NULL && *named != '\0')
    snprintf(out, PATH_MAX, "%s", named);
  else if (xdg != NULL && *xdg == '/')
    snprintf(out, PATH_MAX, "%s/tracectl.conf", xdg);
  else if (home != NULL && *home == '/')
    snprintf(out, PATH_MAX, "%s/.config/tracectl.conf", home);
  else
    return false;
  return named != NULL || access(out, F_OK) == 0;
}

/* Strips blanks from both ends, in place. */
static char *trim(char *text) {
  text += strspn(text, " \t\r\n");
  for (size_t n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL;) text[--n] = '\0';
  return text;
}

/* Values are copied into store, which outlives the source. */
static tb_rc read_line(char *line, char store[SETTINGS][PATH_MAX], struct source *out,
                       const char *path, unsigned number, struct tb_diag *diag) {
  char *text = trim(line), *equals = strchr(text, '=');

  if (*text == '\0' || *text == '#') return TB_OK;
  if (equals == NULL) return tb_fail(diag, TB_BROKEN, "%.100s:%u: not KEY = VALUE", path, number);
  *equals = '\0';
  char *key = trim(text), *value = trim(equals + 1);
  for (char *c = key; *c != '\0'; c++)
    if (*c == '_') *c = '-';
  for (int i = 0; i < SETTINGS; i++)
    if (strcmp(key, names[i].key) == 0) {
      if (snprintf(store[i], PATH_MAX, "%s", value) >= PATH_MAX)
        return tb_fail(diag, TB_BROKEN, "%.100s:%u: %s: too long", path, number, key);
      out->text[i] = store[i];
      return TB_OK;
    }
  return tb_fail(
      diag, TB_BROKEN,
      "%.100s:%u: %.40s: unknown key; known are server, certs, tls-ca, tls-cert, tls-key, tls-crl",
      path, number, key);
}

static tb_rc read_config(char store[SETTINGS][PATH_MAX], struct source *out, struct tb_diag *diag) {
  char path[PATH_MAX], line[LINE_BYTES];
  tb_rc rc = TB_OK;

  if (!config_path(path)) return TB_OK;
  FILE *file = tb_small_file(path);
  if (file == NULL) return tb_fail(diag, TB_IO, "%.120s: %s", path, tb_small_file_fault(errno));
  for (unsigned number = 1; rc == TB_OK && fgets(line, sizeof line, file) != NULL; number++)
    rc = read_line(line, store, out, path, number, diag);
  fclose(file);
  return rc;
}

static void read_environment(struct source *out) {
  for (int i = 0; i < SETTINGS; i++) {
    out->text[i] = getenv(names[i].environment);
    if (out->text[i] == NULL && names[i].fallback != NULL) out->text[i] = getenv(names[i].fallback);
  }
}

static tb_rc set_path(char out[PATH_MAX], const char *file, struct tb_diag *diag) {
  int n = snprintf(out, PATH_MAX, "%s", file);

  return n < PATH_MAX ? TB_OK : tb_fail(diag, TB_BROKEN, "%.60s...: the path is too long", out);
}

static bool says(const struct source *s, enum setting which) {
  return s->text[which] != NULL && *s->text[which] != '\0';
}

static tb_rc take_certs(const struct source *s, struct tb_diag *diag, struct tk_endpoint *out) {
  if (says(s, CERTS)) {
    TB_TRY(tb_cert_path(s->text[CERTS], "reader", TB_CERT_CA, diag, out->ca));
    TB_TRY(tb_cert_path(s->text[CERTS], "reader", TB_CERT_CHAIN, diag, out->cert));
    TB_TRY(tb_cert_path(s->text[CERTS], "reader", TB_CERT_KEY, diag, out->key));
  }
  if (says(s, TLS_CA)) TB_TRY(set_path(out->ca, s->text[TLS_CA], diag));
  if (says(s, TLS_CERT)) TB_TRY(set_path(out->cert, s->text[TLS_CERT], diag));
  if (says(s, TLS_KEY)) TB_TRY(set_path(out->key, s->text[TLS_KEY], diag));
  if (says(s, TLS_CRL)) TB_TRY(set_path(out->crl, s->text[TLS_CRL], diag));
  return TB_OK;
}

static bool starts(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static tb_rc set_socket(const char *path, struct tb_diag *diag, struct tk_endpoint *out) {
  if (strlen(path) >= sizeof((struct sockaddr_un){ 0 }).sun_path)
    return tb_fail(diag, TB_BROKEN, "%.100s...: the socket's path is too long", path);
  snprintf(out->path, sizeof out->path, "%s", path);
  snprintf(out->shown, sizeof out->shown, "%s", path);
  snprintf(out->url, sizeof out->url, "http://localhost");
  return TB_OK;
}

/* Keeps the path after the host: a proxy may serve the collector under it. */
static tb_rc set_url(const char *url, struct tb_diag *diag, struct tk_endpoint *out) {
  const char *host = strstr(url, "://") + 3;
  char authority[TB_HOST_MAX + 16];

  out->tls = starts(url, "https://");
  if (starts(url, "ipc://"))
    return tb_fail(
        diag, TB_BROKEN,
        "--server: \"%.80s\" is an nng URL; a collector is asked over HTTP: unix:PATH of "
        "its http.sock",
        url);
  if (!out->tls && !starts(url, "http://"))
    return tb_fail(diag, TB_BROKEN,
                   "--server: \"%.80s\" is not an HTTP URL: use "
                   "HOST:PORT, http://... or https://...",
                   url);
  size_t len = strcspn(host, "/?#");
  if (strlen(url) >= sizeof out->url || len >= sizeof authority || strpbrk(host, "?#") != NULL)
    return tb_fail(diag, TB_BROKEN,
                   "--server: \"%.80s\" is too long, or more than a host and a path", url);
  snprintf(authority, sizeof authority, "%.*s", (int)len, host);
  TB_TRY(tb_host_parse(authority, diag, &out->at));
  snprintf(out->url, sizeof out->url, "%s", url);
  for (size_t n = strlen(out->url); out->url[n - 1] == '/';) out->url[--n] = '\0';
  snprintf(out->shown, sizeof out->shown, "%s", out->url);
  return TB_OK;
}

static tb_rc take_host(const char *text, struct tb_diag *diag, struct tk_endpoint *out) {
  const char *colon = strchr(text, ':');
  bool bare_ipv6 = colon != NULL && strchr(colon + 1, ':') != NULL && *text != '[';
  bool has_port = colon != NULL && !bare_ipv6 && (*text != '[' || strstr(text, "]:") != NULL);
  char at[TB_HOST_MAX + 16], url[TK_URL_BYTES];

  if (strlen(text) > TB_HOST_MAX) return tb_fail(diag, TB_BROKEN, "--server: the host is too long");
  int n = snprintf(at, sizeof at, "%s%s%s", bare_ipv6 ? "[" : "", text, bare_ipv6 ? "]" : "");
  if (!has_port) snprintf(at + n, sizeof at - (size_t)n, ":%d", TK_HTTP_PORT);
  TB_TRY(tb_hostport_parse(at, diag, &out->at));
  snprintf(url, sizeof url, "http%s://%s", tb_host_is_loopback(out->at.host) ? "" : "s", at);
  TB_TRY(set_url(url, diag, out));
  snprintf(out->shown, sizeof out->shown, "%s", at);
  return TB_OK;
}

static tb_rc take_socket_here(struct tb_diag *diag, struct tk_endpoint *out) {
  /* A packaged collector has it where systemd does not run; where it does, that folder is closed to others. */
  static const char unmanaged[] = "/var/lib/tracecollect/http.sock";
  static const char *const paths[] = { "/run/tracecollect/http.sock", unmanaged,
                                       "./tracecollect-data/http.sock" };
  const char *denied = NULL;

  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    if (access(paths[i], F_OK) == 0) return set_socket(paths[i], diag, out);
    if (errno == EACCES && paths[i] != unmanaged && denied == NULL) denied = paths[i];
  }
  if (denied != NULL)
    return tb_fail(diag, TB_IO, "%s: permission denied; readers are members of its group", denied);
  return tb_fail(diag, TB_NOTFOUND,
                 "no collector here: there is neither %s nor %s nor %s; name one with --server, or "
                 "start one: tracecollectd",
                 paths[0], paths[1], paths[2]);
}

/* Prefers the collector's socket, if we may use it. */
static tb_rc take_ready_file(const char *file, struct tb_diag *diag, struct tk_endpoint *out) {
  char value[TK_URL_BYTES];
  struct tb_diag ignored;

  tb_diag_clear(&ignored);
  if (tk_ready_file_get(file, "sock", &ignored, value, sizeof value) == TB_OK &&
      access(value, W_OK) == 0)
    return set_socket(value, diag, out);
  TB_TRY(tk_ready_file_get(file, "http", diag, value, sizeof value));
  if (*value != '\0') return take_host(value, diag, out);
  return tb_fail(diag, TB_IO, "%.100s: it has no http=, and its sock= is not for this user", file);
}

static tb_rc take_server(const char *text, struct tb_diag *diag, struct tk_endpoint *out) {
  if (text == NULL || *text == '\0') return take_socket_here(diag, out);
  if (*text == '@') return take_ready_file(text + 1, diag, out);
  if (starts(text, "unix:")) return set_socket(text + strlen("unix:"), diag, out);
  if (strstr(text, "://") != NULL) return set_url(text, diag, out);
  return take_host(text, diag, out);
}

/* All are optional: the system has authorities, and a proxy may not require a certificate. */
static tb_rc check_certs(const struct tk_endpoint *e, struct tb_diag *diag) {
  bool has_both = *e->cert != '\0' && *e->key != '\0';

  if (!e->tls) return TB_OK;
  if (!has_both && (*e->cert != '\0' || *e->key != '\0'))
    return tb_fail(diag, TB_BROKEN, "--tls-cert and --tls-key belong together");
  if (*e->crl != '\0' && *e->ca == '\0')
    return tb_fail(diag, TB_BROKEN, "--tls-crl needs --tls-ca: whose lists they are");
  return TB_OK;
}

tb_rc tk_endpoint_find(const struct tk_client_args *args, struct tb_diag *diag,
                       struct tk_endpoint *out) {
  char(*store)[PATH_MAX] = calloc(SETTINGS, PATH_MAX);
  struct source file = { 0 }, environment = { 0 };
  const struct source options = { { args->server, args->certs, args->tls_ca, args->tls_cert,
                                    args->tls_key, args->tls_crl } };
  const struct source *by_rank[] = { &file, &environment, &options };
  const char *server = NULL;

  *out = (struct tk_endpoint){ 0 };
  if (store == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  tb_rc rc = read_config(store, &file, diag);
  read_environment(&environment);
  for (int i = 0; rc == TB_OK && i < 3; i++) {
    rc = take_certs(by_rank[i], diag, out);
    if (says(by_rank[i], SERVER)) server = by_rank[i]->text[SERVER];
  }
  if (rc == TB_OK) rc = take_server(server, diag, out);
  free(store);
  return rc == TB_OK ? check_certs(out, diag) : rc;
}
