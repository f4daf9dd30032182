/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent/forward_scene.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ta_forward *dial(const struct scene *s, uint64_t spool_bytes) {
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = tt_collector_address(s->collector),
                                      .certs = s->dir,
                                      .service = "shop",
                                      .instance = "host:1",
                                      .spool_bytes = spool_bytes };
  ta_forward *f = NULL;
  int error = ta_forward_open(&config, &f);

  cr_assert_eq(error, 0, "open: %s", ta_strerror(error));
  return f;
}

struct scene scene_begin(struct tt_collector_rules rules, uint64_t spool_bytes) {
  struct scene s = { .dir = "/tmp/tt-forward-XXXXXX" };

  cr_assert_not_null(mkdtemp(s.dir));
  tt_certs_make(s.dir);
  s.collector = tt_collector_new(s.dir, 0);
  tt_collector_rule(s.collector, rules);
  s.f = dial(&s, spool_bytes);
  return s;
}

void remove_certs(const char *dir) {
  static const char *const names[] = { "ca", "server", "agent", "reader" };
  char path[128];

  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s.pem", dir, names[i]);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s.key", dir, names[i]);
    unlink(path);
  }
  rmdir(dir);
}

void scene_end(struct scene *s) {
  struct tt_collector_seen seen;

  tt_collector_seen(s->collector, &seen);
  cr_assert_str_eq(seen.breach, "");
  tt_collector_free(s->collector);
  remove_certs(s->dir);
}

struct tt_collector_seen seen_by(struct scene *s) {
  struct tt_collector_seen seen;

  tt_collector_seen(s->collector, &seen);
  return seen;
}

struct ta_forward_status status_of(ta_forward *f) {
  struct ta_forward_status status = { .size = sizeof status };

  cr_assert_eq(ta_forward_status(f, &status), 0);
  return status;
}

void write_all(ta_forward *f, const struct tt_stream *t, size_t chunk) {
  for (size_t at = 0; at < t->n; at += chunk)
    cr_assert_eq(ta_forward_write(f, t->bytes + at, t->n - at < chunk ? t->n - at : chunk), 0);
}

void expect_trace(struct scene *s, const struct tt_stream *t) {
  unsigned char *bytes;
  size_t n = tt_collector_trace(s->collector, &bytes);

  cr_assert_eq(n, t->n, "%zu bytes arrived of %zu", n, t->n);
  cr_assert_eq(memcmp(bytes, t->bytes, n), 0);
  free(bytes);
}

bool has_records(const struct tt_collector_seen *seen, uint64_t n) {
  return seen->records >= n;
}
bool has_connections(const struct tt_collector_seen *seen, uint64_t n) {
  return seen->connections >= n;
}

bool until(ta_forward *f, bool (*fits)(const struct ta_forward_status *, const char *),
           const char *arg) {
  for (int ms = 0; ms < TT_PATIENCE_MS; ms += 5) {
    struct ta_forward_status status = status_of(f);
    if (fits(&status, arg)) return true;
    poll(NULL, 0, 5);
  }
  return false;
}

bool error_says(const struct ta_forward_status *status, const char *text) {
  return strstr(status->last_error, text) != NULL;
}
