/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/health.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/small_file.h"
#include "base/text/cert_path.h"
#include "config/times.h"
#include "proto/json.h"

enum { MEMORY_PERCENT_MAX = 90 };

static const char *const names[TC_CHECKS] = {
  [TC_CHECK_DISK] = "disk", [TC_CHECK_FILES] = "files",   [TC_CHECK_RETENTION] = "retention",
  [TC_CHECK_TLS] = "tls",   [TC_CHECK_MEMORY] = "memory", [TC_CHECK_RUNNING] = "running"
};

enum finding { FINE, WARNS, STOPS };

static void set(struct tc_readiness *r, enum tc_check which, uint64_t now_wall_ns,
                enum finding finding, const char *fmt, ...) TB_PRINTF(5, 6);

static void set(struct tc_readiness *r, enum tc_check which, uint64_t now_wall_ns,
                enum finding finding, const char *fmt, ...) {
  bool ok = finding == FINE, stops = finding == STOPS;
  va_list args;

  if (r->check[which].since_wall_ns == 0 || r->check[which].ok != ok ||
      r->check[which].stops != stops)
    r->check[which].since_wall_ns = now_wall_ns;
  r->check[which].ok = ok;
  r->check[which].stops = stops;
  va_start(args, fmt);
  vsnprintf(r->check[which].state, sizeof r->check[which].state, fmt, args);
  va_end(args);
}

/* --- TLS --------------------------------------------------------------------------------------- */

/* Returns NULL on an error; *out_why is errno, or 0 if the file is not a certificate. */
static X509 *read_certificate(const char *path, int *out_why) {
  FILE *file = tb_small_file(path);
  *out_why = file == NULL ? errno : 0;
  X509 *cert = file != NULL ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
  if (file != NULL) fclose(file);
  ERR_clear_error();
  return cert;
}

static void check_tls(struct tc_readiness *r, const struct tc_readiness_facts *facts) {
  uint64_t at = facts->now_wall_ns;
  int why, days, seconds;
  char path[PATH_MAX];
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (tb_cert_path(facts->certs, "server", TB_CERT_CHAIN, &diag, path) != TB_OK) {
    set(r, TC_CHECK_TLS, at, WARNS, "%s", diag.text);
    return;
  }
  X509 *cert = read_certificate(path, &why);
  if (cert == NULL) {
    set(r, TC_CHECK_TLS, at, WARNS, "%s cannot be read: %s", strrchr(path, '/') + 1,
        why != 0 ? tb_small_file_fault(why) : "it is not a certificate");
    return;
  }
  bool known = ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)) == 1;
  bool begun = X509_cmp_current_time(X509_get0_notBefore(cert)) < 0;
  if (!known || !begun)
    set(r, TC_CHECK_TLS, at, STOPS, "the server's certificate is not valid yet");
  else if (days < 0 || seconds < 0)
    set(r, TC_CHECK_TLS, at, STOPS, "the server's certificate has expired");
  else
    set(r, TC_CHECK_TLS, at, FINE, "the server's certificate is valid for %d days", days);
  X509_free(cert);
}

/* --- memory ------------------------------------------------------------------------------------ */

static bool read_line(const char *path, char *line, int n) {
  FILE *file = fopen(path, "re");
  bool got = file != NULL && fgets(line, n, file) != NULL;

  if (file != NULL) fclose(file);
  return got;
}

/* Returns the memory limit of the control group (the unit's MemoryMax); 0: none, or unknown. */
static uint64_t group_limit(void) {
  char line[PATH_MAX], path[PATH_MAX + 64];
  uint64_t limit = 0;

  if (!read_line("/proc/self/cgroup", line, sizeof line) || strncmp(line, "0::", 3) != 0) return 0;
  line[strcspn(line, "\n")] = '\0';
  snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
  if (!read_line(path, line, sizeof line) || sscanf(line, "%" SCNu64, &limit) != 1) return 0;
  return limit;
}

static void check_memory(struct tc_readiness *r, uint64_t at) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = 0;
  uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * page, group = group_limit();
  char line[128];

  if (group != 0 && group < limit) limit = group;
  if (!read_line("/proc/self/statm", line, sizeof line) ||
      sscanf(line, "%*u %" SCNu64, &pages) != 1) {
    set(r, TC_CHECK_MEMORY, at, FINE, "not known: /proc cannot be read");
    return;
  }
  set(r, TC_CHECK_MEMORY, at, pages * page < limit / 100 * MEMORY_PERCENT_MAX ? FINE : WARNS,
      "%" PRIu64 " MiB in use of %" PRIu64 " MiB", pages * page >> 20, limit >> 20);
}

/* --- public ------------------------------------------------------------------------------------ */

void tc_readiness_update(struct tc_readiness *r, const struct tc_readiness_facts *facts) {
  const char *health = facts->store.health;
  uint64_t at = facts->now_wall_ns;
  bool disk = health == NULL || strcmp(health, "ok") == 0;

  if (disk)
    set(r, TC_CHECK_DISK, at, FINE, "%" PRIu64 " MiB free", facts->store.disk_free_bytes >> 20);
  else
    set(r, TC_CHECK_DISK, at, STOPS, "%s", health);
  if (facts->store.files_missing > 0)
    set(r, TC_CHECK_FILES, at, WARNS, "%" PRIu64 " were removed under the running daemon",
        facts->store.files_missing);
  else
    set(r, TC_CHECK_FILES, at, FINE, "all are there that were looked at");
  if (facts->store.retention_at_floor)
    set(r, TC_CHECK_RETENTION, at, WARNS,
        "%" PRIu64 " MiB free, less than retention.free_bytes, and nothing is left to delete",
        facts->store.disk_free_bytes >> 20);
  else
    set(r, TC_CHECK_RETENTION, at, FINE, "the archive has %" PRIu64 " MiB",
        facts->store.archive_bytes >> 20);
  check_tls(r, facts);
  check_memory(r, at);
  set(r, TC_CHECK_RUNNING, at, facts->running ? FINE : STOPS,
      facts->running ? "taking traces in" : "shutting down");
}

bool tc_readiness_is_ready(const struct tc_readiness *r) {
  for (unsigned i = 0; i < TC_CHECKS; i++)
    if (r->check[i].stops) return false;
  return true;
}

void tc_readiness_write(const struct tc_readiness *r, struct tb_buf *out) {
  char since[TC_TIME_BYTES];

  tb_buf_printf(out, "{\"ready\":%s,\"checks\":[", tc_readiness_is_ready(r) ? "true" : "false");
  for (unsigned i = 0; i < TC_CHECKS; i++) {
    tc_time_format(r->check[i].since_wall_ns, since);
    tb_buf_printf(out, "%s{\"name\":\"%s\",\"ok\":%s,\"stops\":%s,\"state\":", i > 0 ? "," : "",
                  names[i], r->check[i].ok ? "true" : "false",
                  r->check[i].stops ? "true" : "false");
    tp_json_text(out, r->check[i].state);
    tb_buf_printf(out, ",\"since\":\"%s\"}", since);
  }
  tb_buf_text(out, "]}\n");
}
