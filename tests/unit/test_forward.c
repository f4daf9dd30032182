/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/forward.h"
#include "base/check.h"
#include "tests/support/certs.h"
#include "tests/support/scripted_collector.h"
#include "tests/support/stream.h"
#include "traceagent.h"

/* A collector, its certificates, and a stream opened to it. */
struct scene {
  char dir[64];
  struct tt_collector *collector;
  ta_forward *f;
};

static ta_forward *dial(const struct scene *s, uint64_t spool_bytes) {
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

static struct scene begin(struct tt_collector_rules rules, uint64_t spool_bytes) {
  struct scene s = { .dir = "/tmp/tt-forward-XXXXXX" };

  cr_assert_not_null(mkdtemp(s.dir));
  tt_certs_make(s.dir);
  s.collector = tt_collector_new(s.dir, 0);
  tt_collector_rule(s.collector, rules);
  s.f = dial(&s, spool_bytes);
  return s;
}

static void remove_certs(const char *dir) {
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

static void end(struct scene *s) {
  struct tt_collector_seen seen;

  tt_collector_seen(s->collector, &seen);
  cr_assert_str_eq(seen.breach, "");
  tt_collector_free(s->collector);
  remove_certs(s->dir);
}

static struct tt_collector_seen seen_by(struct scene *s) {
  struct tt_collector_seen seen;

  tt_collector_seen(s->collector, &seen);
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
  size_t n = tt_collector_trace(s->collector, &bytes);

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

/* Losing the collector. */

static bool has_records(const struct tt_collector_seen *seen, uint64_t n) {
  return seen->records >= n;
}
static bool has_connections(const struct tt_collector_seen *seen, uint64_t n) {
  return seen->connections >= n;
}

/* Polls the status until it fits; false after 20 s. */
static bool until(ta_forward *f, bool (*fits)(const struct ta_forward_status *, const char *),
                  const char *arg) {
  for (int i = 0; i < 4000; i++) {
    struct ta_forward_status status = status_of(f);
    if (fits(&status, arg)) return true;
    poll(NULL, 0, 5);
  }
  return false;
}

static bool error_says(const struct ta_forward_status *status, const char *text) {
  return strstr(status->last_error, text) != NULL;
}

static bool is_refused(const struct ta_forward_status *status, const char *unused) {
  (void)unused;
  return status->state == TA_STATE_REFUSED;
}

Test(forward, a_collector_that_hangs_up_gets_the_rest_and_nothing_twice) {
  struct scene s = begin((struct tt_collector_rules){ .hang_up_after = 7 }, 0);
  struct tt_stream t = tt_stream_make(26, 6, 5, 3000);

  write_all(s.f, &t, 10000);
  cr_assert(tt_collector_wait(s.collector, has_connections, 4));
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  struct tt_collector_seen seen = seen_by(&s);
  cr_assert_geq(seen.connections, 4);
  cr_assert_eq(seen.batches, t.batches);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

Test(forward, records_acked_late_are_sent_again_but_stored_once) {
  struct scene s = begin((struct tt_collector_rules){ .no_acks = true }, 0);
  struct tt_stream t = tt_stream_make(26, 4, 5, 3000);

  write_all(s.f, &t, 10000);
  cr_assert(tt_collector_wait(s.collector, has_records, 10));
  tt_collector_down(s.collector);
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  tt_collector_up(s.collector);
  cr_assert_eq(ta_forward_sync(s.f, 20000), 0);
  cr_assert_geq(status_of(s.f).reconnects, 1);
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

Test(forward, the_first_connection_may_take_its_time) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
  struct tt_stream t = tt_stream_make(22, 3, 4, 1000);

  ta_forward_close(s.f, 0);
  tt_collector_down(s.collector);
  s.f = dial(&s, 0);
  write_all(s.f, &t, 512);
  cr_assert_eq(ta_forward_sync(s.f, 300), TA_E_TIMEOUT);
  cr_assert(until(s.f, error_says, "Connection refused"));
  tt_collector_up(s.collector);
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  tt_stream_free(&t);
  end(&s);
}

Test(forward, no_more_is_on_the_way_than_the_credit_allows) {
  enum { WINDOW = 100000 };
  struct scene s = begin((struct tt_collector_rules){ .credit_bytes = WINDOW }, 0);
  struct tt_stream t = tt_stream_make(26, 5, 10, 30000);

  write_all(s.f, &t, 65536); /* the collector itself calls a breach of its credit */
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  cr_assert_leq(seen_by(&s).max_on_the_way, WINDOW);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

Test(forward, a_silent_collector_is_left_after_three_heartbeats) {
  struct scene s = begin((struct tt_collector_rules){ .heartbeat_ms = 50, .mute = true }, 0);
  struct tt_stream t = tt_stream_make(26, 2, 4, 1000);

  write_all(s.f, &t, 4096);
  cr_assert(until(s.f, error_says, "collector silent"));
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

Test(forward, goaway_is_followed_and_its_wait_is_kept) {
  struct scene s = begin((struct tt_collector_rules){ .goaway_wait_ms = 300 }, 0);
  struct tt_stream t = tt_stream_make(26, 2, 4, 1000);
  struct timespec start, now;

  clock_gettime(CLOCK_MONOTONIC, &start);
  write_all(s.f, &t, 4096);
  cr_assert(until(s.f, error_says, "collector goes away: shutdown"));
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  clock_gettime(CLOCK_MONOTONIC, &now);
  cr_assert_geq((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000, 300);
  cr_assert_eq(seen_by(&s).connections, 2);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

/* Being refused. */

Test(forward, a_refusal_for_good_ends_the_stream_by_name) {
  struct scene s =
      begin((struct tt_collector_rules){ .refuse_code = 2, .refuse_permanent = true }, 0);

  cr_assert(until(s.f, is_refused, NULL));
  cr_assert_str_eq(status_of(s.f).last_error,
                   "collector refuses: REFUSE_IDENTITY: the test wants it");
  cr_assert_eq(ta_forward_write(s.f, "go 1.26 trace\0\0", 16), TA_E_REFUSED);
  cr_assert_eq(ta_forward_close(s.f, 1000), TA_E_REFUSED);
  end(&s);
}

Test(forward, a_refusal_for_now_is_waited_out) {
  struct scene s = begin((struct tt_collector_rules){ .refuse_code = 7 }, 0);
  struct tt_stream t = tt_stream_make(26, 2, 4, 1000);

  write_all(s.f, &t, 4096);
  cr_assert(until(s.f, error_says, "refuses for now: REFUSE_STORAGE"));
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

Test(forward, a_collector_of_another_authority_is_not_spoken_to) {
  struct scene s = begin((struct tt_collector_rules){ .refuse_code = 7 }, 0);
  char other[] = "/tmp/tt-forward-XXXXXX";

  cr_assert_not_null(mkdtemp(other));
  tt_certs_make(other);
  tt_collector_down(s.collector); /* a handshake under way has the old ones */
  tt_collector_rule(s.collector, (struct tt_collector_rules){ .certs = other });
  tt_collector_up(s.collector);
  cr_assert(until(s.f, error_says, "collector's certificate: "));
  cr_assert_eq(seen_by(&s).connections, 0);
  cr_assert_neq(status_of(s.f).state,
                TA_STATE_REFUSED); /* it may be renewed: tried again and again */
  ta_forward_close(s.f, 0);
  remove_certs(other);
  end(&s);
}

Test(forward, a_certificate_that_is_no_collectors_is_not_spoken_to) {
  static const char *const sans[] = {
    "URI:tracecollect:agent/test,IP:127.0.0.1", /* another role */
    "URI:tracecollect:server/a,URI:tracecollect:server/b",
    "DNS:elsewhere.example", /* no URI: then the name must fit */
  };

  for (int i = 0; i < 3; i++) {
    struct scene s = begin((struct tt_collector_rules){ .refuse_code = 7 }, 0);
    tt_certs_issue(s.dir, "server", sans[i], 3600);
    cr_assert(until(s.f, error_says, i < 2 ? "no single SAN URI" : "is not for 127.0.0.1"), "%s",
              sans[i]);
    cr_assert_eq(seen_by(&s).connections, 0);
    ta_forward_close(s.f, 0);
    end(&s);
  }
}

Test(forward, a_public_certificate_for_the_host_will_do) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);

  ta_forward_close(s.f, 0);
  tt_certs_issue(s.dir, "server", "IP:127.0.0.1", 3600);
  s.f = dial(&s, 0);
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  end(&s);
}

Test(forward, a_server_without_our_alpn_is_not_spoken_to) {
  struct scene s = begin((struct tt_collector_rules){ .no_alpn = true }, 0);

  cr_assert(until(s.f, error_says, "does not speak tracecollect/1"));
  cr_assert_eq(seen_by(&s).connections, 0);
  ta_forward_close(s.f, 0);
  end(&s);
}

Test(forward, the_collectors_alert_is_the_last_error) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);

  ta_forward_close(s.f, 0);
  tt_certs_issue(s.dir, "agent", "URI:tracecollect:agent/test", -60); /* expired */
  s.f = dial(&s, 0);
  cr_assert(until(s.f, error_says, "certificate expired"));
  ta_forward_close(s.f, 0);
  end(&s);
}

Test(forward, a_collector_that_acks_what_was_not_sent_is_left) {
  struct scene s = begin((struct tt_collector_rules){ .ack_ahead = 5 }, 0);
  struct tt_stream t = tt_stream_make(26, 1, 1, 1000);

  write_all(s.f, &t, t.n);
  cr_assert(until(s.f, error_says, "collector acks record"));
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

/* More than the spool holds. */

Test(forward, a_full_spool_drops_whole_generations_and_says_so_exactly) {
  enum { MIB = 1 << 20 };
  struct scene s = begin((struct tt_collector_rules){ 0 }, MIB);
  struct tt_stream t = tt_stream_make(26, 40, 5, 20000); /* 4 MB */

  ta_forward_close(s.f, 0);
  tt_collector_down(s.collector);
  s.f = dial(&s, MIB);
  write_all(s.f, &t, 65536);
  struct ta_forward_status status = status_of(s.f);
  cr_assert_leq(status.spool_bytes_peak, MIB);
  cr_assert_gt(status.spool_bytes_peak, MIB * 8 / 10);
  cr_assert_gt(status.lost_generations, 25);
  cr_assert_eq(status.produced_bytes, status.lost_bytes + status.spool_bytes);
  tt_collector_up(s.collector);
  cr_assert_eq(ta_forward_sync(s.f, 20000), 0);
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  struct tt_collector_seen seen = seen_by(&s);
  uint64_t lost_batches = 0, lost_bytes = 0, lost_generations = 0;
  for (unsigned i = 0; i < seen.n_losses; i++) {
    lost_batches += seen.losses[i].batches;
    lost_bytes += seen.losses[i].bytes;
    lost_generations += seen.losses[i].last_gen - seen.losses[i].first_gen + 1;
  }
  cr_assert_eq(lost_generations + seen.generations, 40);
  cr_assert_eq(lost_generations, status.lost_generations);
  cr_assert_eq(lost_batches + seen.batches, t.batches);
  cr_assert_eq(lost_bytes + seen.batch_bytes, t.n - 16);
  cr_assert_eq(seen.closed_lost_batches, lost_batches);
  tt_stream_free(&t);
  end(&s);
}

Test(forward, a_generation_larger_than_the_spool_flows_through) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 1 << 20);
  struct tt_stream t = tt_stream_make(26, 1, 200, 60000); /* 12 MB */

  for (size_t at = 0; at < t.n; at += 60000) {
    size_t n = t.n - at < 60000 ? t.n - at : 60000;
    cr_assert_eq(ta_forward_write(s.f, t.bytes + at, n), 0);
    cr_assert_eq(ta_forward_sync(s.f, 20000), 0); /* a writer as slow as the network */
  }
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  cr_assert_eq(seen_by(&s).n_losses, 0);
  cr_assert_eq(seen_by(&s).generations, 1);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

Test(forward, a_generation_that_went_out_in_part_is_abandoned_and_the_next_is_whole) {
  struct scene s = begin((struct tt_collector_rules){ .deaf = true }, 1 << 20);
  struct tt_stream big = tt_stream_make(26, 2, 60, 60000); /* 3.6 MB each */

  cr_assert(tt_collector_wait(s.collector, has_connections, 1));
  size_t one = 16 + (big.n - 16) / 2;
  cr_assert_eq(ta_forward_write(s.f, big.bytes, 400000), 0);
  poll(NULL, 0, 50); /* some of it is sent by now, how much does not matter */
  for (size_t at = 400000; at < one; at += 60000)
    ta_forward_write(s.f, big.bytes + at, one - at < 60000 ? one - at : 60000);
  cr_assert_eq(status_of(s.f).lost_generations, 1);
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_sync(s.f, 20000), 0);
  for (size_t at = one; at < big.n; at += 60000) {
    ta_forward_write(s.f, big.bytes + at, big.n - at < 60000 ? big.n - at : 60000);
    cr_assert_eq(ta_forward_sync(s.f, 20000), 0);
  }
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  struct tt_collector_seen seen = seen_by(&s);
  cr_assert_eq(seen.n_losses, 1);
  cr_assert_eq(seen.losses[0].first_gen, 1);
  cr_assert_eq(seen.losses[0].batches, 61);
  cr_assert_eq(seen.losses[0].bytes, one - 16);
  cr_assert_eq(seen.generations, 1);
  unsigned char *bytes;
  size_t n = tt_collector_trace(s.collector, &bytes);
  cr_assert_eq(n, 16 + big.n - one);
  cr_assert_eq(memcmp(bytes + 16, big.bytes + one, big.n - one), 0);
  free(bytes);
  tt_stream_free(&big);
  end(&s);
}

/* Whatever the bytes are. */

Test(forward, broken_bytes_are_carried_as_they_are) {
  static const size_t cuts[] = { 0, 1, 15, 16, 17, 30, 2000 };
  struct tt_stream t = tt_stream_make(23, 2, 3, 1000);

  memset(t.bytes + 2500, 0xff, 200);
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
    struct tt_stream part = { .bytes = t.bytes + (i == 6 ? 5 : 0),
                              .n = i == 6 ? t.n - 5 : cuts[i] };
    if (i == 5) part.n = t.n;
    cr_assert_eq(ta_forward_write(s.f, part.bytes, part.n), 0);
    cr_assert_eq(ta_forward_close(s.f, 20000), 0);
    expect_trace(&s, &part);
    end(&s);
  }
  tt_stream_free(&t);
}

/* In somebody else's process. */

static bool is_off(const struct ta_forward_status *status, const char *why) {
  return status->state == TA_STATE_OFF && status->faults > 0 &&
         strstr(status->last_error, why) != NULL;
}

/* Called inside a write that waits for room. */
static bool make_a_mistake(void *self) {
  return TB_CHECK(self == NULL);
}

Test(forward, a_failed_check_of_the_writer_turns_off_the_stream_not_its_host) {
  struct scene s = begin((struct tt_collector_rules){ .deaf = true }, 0);
  struct tt_stream t = tt_stream_make(26, 4, 20, 60000);
  struct ta_forward_config config = { .server = tt_collector_address(s.collector),
                                      .certs = s.dir,
                                      .service = "shop",
                                      .spool_bytes = 1 << 20 };
  int error = 0;

  ta_forward_close(s.f, 0);
  cr_assert_eq(ta_forward_open_patient(&config, make_a_mistake, &s, &s.f), 0);
  /* Noted by the first write that has to wait, and then it drops what it has no room for. */
  for (size_t at = 0; at + 60000 < t.n && error == 0; at += 60000)
    error = ta_forward_write(s.f, t.bytes + at, 60000);
  cr_assert_eq(error, TA_E_OFF);
  cr_assert(until(s.f, is_off, "self == NULL"));
  cr_assert_eq(ta_forward_write(s.f, t.bytes, 100), TA_E_OFF);
  cr_assert_eq(ta_forward_close(s.f, 10000), TA_E_OFF);
  tt_stream_free(&t);
  end(&s);
}

static void log_a_mistake(void *self, int level, const char *text) {
  (void)level, (void)text;
  (void)TB_CHECK(self == NULL);
}

Test(forward, a_failed_check_of_the_sender_turns_off_the_stream_not_its_host) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
  struct ta_forward_config config = { .server = tt_collector_address(s.collector),
                                      .certs = s.dir,
                                      .service = "shop",
                                      .log = log_a_mistake,
                                      .log_self = &s };

  ta_forward_close(s.f, 10000);
  cr_assert_eq(ta_forward_open(&config, &s.f), 0);
  cr_assert(until(s.f, is_off, "check failed: test_forward.c: self == NULL"));
  cr_assert_eq(ta_forward_write(s.f, "go 1.26 trace\0\0", 16), TA_E_OFF);
  cr_assert_eq(ta_forward_close(s.f, 10000), TA_E_OFF);
  end(&s);
}

Test(forward, errno_and_the_signal_mask_stay_as_they_were) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
  struct tt_stream t = tt_stream_make(26, 1, 2, 1000);
  struct ta_forward_status status = { .size = sizeof status };
  struct ta_forward_config bad = { .server = "nowhere" };
  sigset_t before, after;
  ta_forward *none;

  sigprocmask(SIG_BLOCK, NULL, &before);
  errno = 4711;
  cr_assert_eq(ta_forward_open(&bad, &none), TA_E_CONFIG);
  cr_assert_eq(errno, 4711);
  ta_forward_write(s.f, t.bytes, t.n);
  cr_assert_eq(errno, 4711);
  ta_forward_status(s.f, &status);
  ta_forward_sync(s.f, 10000);
  cr_assert_eq(errno, 4711);
  ta_forward_close(s.f, 10000);
  cr_assert_eq(errno, 4711);
  sigprocmask(SIG_BLOCK, NULL, &after);
  cr_assert_eq(memcmp(&before, &after, sizeof before), 0);
  tt_stream_free(&t);
  end(&s);
}

/* The mask of each other thread of ours that is called traceagent, from /proc. */
static unsigned agents_blocking_everything(void) {
  unsigned found = 0;
  char path[300], line[256];
  DIR *tasks = opendir("/proc/self/task");

  for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
    bool ours = false;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    while (fgets(line, sizeof line, file) != NULL) {
      if (strcmp(line, "Name:\ttraceagent\n") == 0) ours = true;
      /* all but SIGKILL, SIGSTOP and the C library's own two */
      if (ours && strncmp(line, "SigBlk:\tfffffffe7ffbfeff", 24) == 0) found++;
    }
    fclose(file);
  }
  closedir(tasks);
  return found;
}

Test(forward, its_thread_takes_no_signal) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);

  /* The C library itself plays with a new thread's mask for a moment. */
  for (int i = 0; i < 2000 && agents_blocking_everything() == 0; i++) poll(NULL, 0, 1);
  cr_assert_eq(agents_blocking_everything(), 1);
  ta_forward_close(s.f, 10000);
  end(&s);
}

Test(forward, a_forked_child_is_off_and_the_parent_goes_on) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
  struct tt_stream t = tt_stream_make(26, 2, 4, 1000);
  struct ta_forward_status status = { .size = sizeof status };
  int how;

  ta_forward_write(s.f, t.bytes, 3000);
  pid_t child = fork();
  if (child == 0) {
    bool off = ta_forward_write(s.f, t.bytes, 100) == TA_E_OFF &&
               ta_forward_sync(s.f, -1) == TA_E_OFF &&
               ta_forward_status(s.f, &status) == TA_E_OFF && ta_forward_close(s.f, -1) == TA_E_OFF;
    _exit(off ? 0 : 1);
  }
  cr_assert_eq(waitpid(child, &how, 0), child);
  cr_assert_eq(how, 0);
  ta_forward_write(s.f, t.bytes + 3000, t.n - 3000);
  cr_assert_eq(ta_forward_close(s.f, 10000), 0);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

/* A program of its own, tests/unit/exit_while_streaming.c, says on stdout when it calls exit(). */
static uint64_t exit_ms(struct scene *s, int turns) {
  char program[] = TT_EXIT_WHILE_STREAMING, address[32], count[12];
  char *argv[] = { program, address, s->dir, count, NULL };
  struct timespec began, ended;
  posix_spawn_file_actions_t actions;
  int how, pipes[2];
  pid_t child;

  snprintf(address, sizeof address, "%s", tt_collector_address(s->collector));
  snprintf(count, sizeof count, "%d", turns);
  cr_assert_eq(pipe(pipes), 0);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
  cr_assert_eq(posix_spawn(&child, argv[0], &actions, NULL, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(pipes[1]);
  cr_assert_eq(waitpid(child, &how, 0), child);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  cr_assert_eq(how, 0, "after %d turns: status %d", turns, how);
  cr_assert_eq(read(pipes[0], &began, sizeof began), sizeof began);
  close(pipes[0]);
  return (uint64_t)((ended.tv_sec - began.tv_sec) * 1000 +
                    (ended.tv_nsec - began.tv_nsec) / 1000000);
}

Test(forward, exit_while_streaming_never_crashes_and_is_quick, .timeout = 110) {
#ifdef __SANITIZE_THREAD__
  enum { TIMES = 40 }; /* each takes ten times as long */
#else
  enum { TIMES = 200 };
#endif
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
  uint64_t slowest_ms = 0;

  ta_forward_close(s.f, 10000);
  for (int i = 0; i < TIMES; i++) {
    uint64_t ms = exit_ms(&s, i % 16);
    if (ms > slowest_ms) slowest_ms = ms;
  }
  cr_assert_leq(slowest_ms, 2000, "the slowest exit took %lu ms", (unsigned long)slowest_ms);
  tt_collector_free(s.collector);
  remove_certs(s.dir);
}

Test(forward, the_off_switch_and_the_environment) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
  ta_forward *f = NULL;

  ta_forward_close(s.f, 10000);
  setenv("TRACEAGENT_DISABLE", "1", 1);
  cr_assert_eq(ta_forward_open(&(struct ta_forward_config){ 0 }, &f), TA_E_OFF);
  unsetenv("TRACEAGENT_DISABLE");
  setenv("TRACEAGENT_SERVER", tt_collector_address(s.collector), 1);
  setenv("TRACEAGENT_CERTS", s.dir, 1);
  setenv("TRACEAGENT_SERVICE", "from-env", 1);
  setenv("TRACEAGENT_INSTANCE", "i:7", 1);
  cr_assert_eq(ta_forward_open(&(struct ta_forward_config){ 0 }, &f), 0);
  cr_assert_eq(ta_forward_close(f, 10000), 0);
  cr_assert_str_eq(seen_by(&s).service, "from-env");
  cr_assert_str_eq(seen_by(&s).instance, "i:7");
  end(&s);
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ /* they map terabytes */
Test(forward, want_of_memory_is_not_taken_for_want_of_configuration) {
  enum { SERVICE_BYTES = 256 << 20 };
  char *service = malloc(SERVICE_BYTES);
  struct ta_forward_config config = { .server = "127.0.0.1:1", .certs = "/c", .service = service };
  struct rlimit limit = { .rlim_cur = SERVICE_BYTES * 3 / 2, .rlim_max = RLIM_INFINITY };
  ta_forward *f = NULL;

  memset(service, 's', SERVICE_BYTES - 1);
  service[SERVICE_BYTES - 1] = 0;
  cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
  cr_assert_eq(ta_forward_open(&config, &f), TA_E_NOMEM);
  cr_assert_null(f);
  free(service);
}
#endif

Test(forward, close_gives_up_at_its_deadline) {
  struct scene s = begin((struct tt_collector_rules){ .no_acks = true }, 0);
  struct tt_stream t = tt_stream_make(26, 1, 4, 1000);
  struct timespec start, now;

  write_all(s.f, &t, t.n);
  clock_gettime(CLOCK_MONOTONIC, &start);
  cr_assert_eq(ta_forward_close(s.f, 200), TA_E_TIMEOUT);
  clock_gettime(CLOCK_MONOTONIC, &now);
  cr_assert_lt((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000, 1500);
  tt_stream_free(&t);
  end(&s);
}

Test(forward, the_rate_cap_holds) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 4 << 20);
  struct tt_stream t = tt_stream_make(26, 10, 5, 20000); /* 1 MB */
  struct timespec start, now;
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = tt_collector_address(s.collector),
                                      .certs = s.dir,
                                      .service = "shop",
                                      .spool_bytes = 4 << 20,
                                      .rate_bytes_s = 2000000 };

  ta_forward_close(s.f, 0);
  cr_assert_eq(ta_forward_open(&config, &s.f), 0);
  cr_assert_eq(ta_forward_sync(s.f, 10000), 0);
  clock_gettime(CLOCK_MONOTONIC, &start);
  write_all(s.f, &t, 65536);
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  clock_gettime(CLOCK_MONOTONIC, &now);
  double seconds =
      (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) * 1e-9;
  cr_assert_geq(seconds, 0.35, "1 MB at 2 MB/s took %.2f s", seconds);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  end(&s);
}

/* Milliseconds that a header and `batches` batches of 100 bytes take at the rate. */
static long ms_at_rate(uint64_t rate_bytes_s, unsigned batches) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
  struct tt_stream t = tt_stream_make(26, 1, batches, 100);
  struct timespec start, now;
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = tt_collector_address(s.collector),
                                      .certs = s.dir,
                                      .service = "shop",
                                      .rate_bytes_s = rate_bytes_s };

  ta_forward_close(s.f, 0);
  cr_assert_eq(ta_forward_open(&config, &s.f), 0);
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (batches == 0) t.n = 16; /* no end mark either */
  write_all(s.f, &t, t.n);
  cr_assert_eq(ta_forward_sync(s.f, 20000), 0, "at %lu bytes/s", (unsigned long)rate_bytes_s);
  clock_gettime(CLOCK_MONOTONIC, &now);
  ta_forward_close(s.f, 0);
  tt_stream_free(&t);
  end(&s);
  return (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
}

Test(forward, a_small_rate_is_kept_exactly) {
  struct tt_stream t = tt_stream_make(26, 1, 5, 100);

  ms_at_rate(1, 0); /* the first frame goes at once, however long it is paid for */
  /* All but the last frame, which owes: the header and five batches with 32 bytes each. */
  long ms = ms_at_rate(400, 5), due = (long)(t.n - 16) * 1000 / 400;
  cr_assert_geq(ms, due * 8 / 10);
  cr_assert_leq(ms, due * 2 + 1000);
  tt_stream_free(&t);
}

Test(forward, a_ready_file_is_read_again_at_each_connect) {
  struct scene s = begin((struct tt_collector_rules){ 0 }, 0);
  struct tt_stream t = tt_stream_make(26, 2, 4, 1000);
  char server[100], *path = server + 1;

  ta_forward_close(s.f, 0);
  snprintf(server, sizeof server, "@%s/ready", s.dir);
  struct ta_forward_config config = {
    .size = sizeof config, .server = server, .certs = s.dir, .service = "shop"
  };
  cr_assert_eq(ta_forward_open(&config, &s.f), 0);
  write_all(s.f, &t, t.n);
  cr_assert(until(s.f, error_says, "No such file"));
  FILE *file = fopen(path, "w");
  fprintf(file, "pid=1\nagents=%s\nhttp=127.0.0.1:1\n", tt_collector_address(s.collector));
  fclose(file);
  cr_assert_eq(ta_forward_close(s.f, 20000), 0);
  expect_trace(&s, &t);
  unlink(path);
  tt_stream_free(&t);
  end(&s);
}
