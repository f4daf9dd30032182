/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/certs.h"
#include "tests/support/scripted_collector.h"
#include "tests/support/stream.h"
#include "traceagent.h"

/* A collector, its certificates, and a stream opened to it. */
struct scene {
  char dir[64];
  struct tt_collector *peer;
  ta_forward *f;
};

static ta_forward *dial(const struct scene *s, uint64_t spool_bytes) {
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = tt_collector_address(s->peer),
                                      .certs = s->dir,
                                      .service = "shop",
                                      .instance = "host:1",
                                      .spool_bytes = spool_bytes };
  ta_forward *f = NULL;
  int error = ta_forward_open(&config, &f);

  cr_assert_eq(error, 0, "open: %s", ta_strerror(error));
  return f;
}

static struct scene begin(struct tt_collector_rules rules, uint64_t spool_bytes) {
  struct scene s = { .dir = "/tmp/tt-forward-XXXXXX" };

  cr_assert_not_null(mkdtemp(s.dir));
  tt_certs_make(s.dir);
  s.peer = tt_collector_new(s.dir, 0);
  tt_collector_rule(s.peer, rules);
  s.f = dial(&s, spool_bytes);
  return s;
}

static void end(struct scene *s) {
  static const char *const files[] = { "ca", "server", "agent", "reader" };
  struct tt_collector_seen seen;
  char path[128];

  tt_collector_seen(s->peer, &seen);
  cr_assert_str_eq(seen.breach, "");
  tt_collector_free(s->peer);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/%s.pem", s->dir, files[i]);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s.key", s->dir, files[i]);
    unlink(path);
  }
  rmdir(s->dir);
}

static struct tt_collector_seen seen_by(struct scene *s) {
  struct tt_collector_seen seen;

  tt_collector_seen(s->peer, &seen);
  return seen;
}

static struct ta_forward_status status_of(ta_forward *f) {
  struct ta_forward_status status = { .size = sizeof status };

  cr_assert_eq(ta_forward_status(f, &status), 0);
  return status;
}

static void write_all(ta_forward *f, const struct tt_stream *t, size_t chunk) {
  for (size_t at = 0; at < t->n; at += chunk)
    cr_assert_eq(ta_forward_write(f, t->bytes + at, t->n - at < chunk ? t->n - at : chunk), 0);
}

static void expect_trace(struct scene *s, const struct tt_stream *t) {
  unsigned char *bytes;
  size_t n = tt_collector_trace(s->peer, &bytes);

  cr_assert_eq(n, t->n, "%zu bytes arrived of %zu", n, t->n);
  cr_assert_eq(memcmp(bytes, t->bytes, n), 0);
  free(bytes);
}

Test(forward, what_is_written_arrives_byte_for_byte_in_any_chunking) {
  static const size_t chunks[] = { 1 << 20, 65536, 4097, 1 };
  static const unsigned versions[] = { 22, 23, 25, 26 };

  for (int i = 0; i < 4; i++) {
    struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
    struct tt_stream t = tt_stream_make(versions[i], 3, 5, i == 3 ? 200 : 20000);
    write_all(s.f, &t, chunks[i]);
    cr_assert_eq(ta_forward_sync(s.f, 10000), 0);
    struct ta_forward_status status = status_of(s.f);
    cr_assert_eq(status.state, TA_STATE_STREAMING);
    cr_assert_eq(status.acked_bytes, status.produced_bytes);
    cr_assert_eq(status.produced_bytes, t.n - 16);
    cr_assert_eq(status.produced_batches, t.batches);
    cr_assert_eq(status.spool_bytes, 0);
    cr_assert_eq(ta_forward_close(s.f, 10000), 0);
    struct tt_collector_seen seen = seen_by(&s);
    cr_assert(seen.closed);
    cr_assert_eq(seen.generations, 3);
    cr_assert_eq(seen.closed_produced_batches, t.batches);
    cr_assert_str_eq(seen.service, "shop");
    cr_assert_str_eq(seen.stream, status.stream);
    expect_trace(&s, &t);
    tt_stream_free(&t);
    end(&s);
  }
}
