/* SPDX-License-Identifier: Apache-2.0 */
/* A stream to a collector: what arrives, whatever happens to the collector. */
#include <criterion/criterion.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/agent/forward_scene.h"

Test(forward, what_is_written_arrives_byte_for_byte_in_any_chunking) {
  static const size_t chunks[] = { 1 << 20, 65536, 4097, 1 };
  static const unsigned versions[] = { 22, 23, 25, 26 };

  for (int i = 0; i < 4; i++) {
    struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
    struct tt_stream t = tt_stream_make(versions[i], 3, 5, i == 3 ? 200 : 20000);
    write_all(s.f, &t, chunks[i]);
    cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS), 0);
    struct ta_forward_status status = status_of(s.f);
    cr_assert_eq(status.state, TA_STATE_STREAMING);
    cr_assert_eq(status.acked_bytes, status.produced_bytes);
    cr_assert_eq(status.produced_bytes, t.n - 16);
    cr_assert_eq(status.produced_batches, t.batches);
    cr_assert_eq(status.spool_bytes, 0);
    cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
    struct tt_collector_seen seen = seen_by(&s);
    cr_assert(seen.closed);
    cr_assert_eq(seen.generations, 3);
    cr_assert_eq(seen.closed_produced_batches, t.batches);
    cr_assert_str_eq(seen.service, "shop");
    cr_assert_str_eq(seen.stream, status.stream);
    expect_trace(&s, &t);
    tt_stream_free(&t);
    scene_end(&s);
  }
}

/* The notices that the agent sends to its host. */

struct effects {
  pthread_mutex_t lock;
  const char *about;
  char text[300];
};

static void keep_warning(void *self, int level, const char *text) {
  struct effects *effects = self;

  if (level != LOG_WARNING || strstr(text, effects->about) == NULL) return;
  pthread_mutex_lock(&effects->lock);
  snprintf(effects->text, sizeof effects->text, "%s", text);
  pthread_mutex_unlock(&effects->lock);
}

/* Tests that lose the collector. */

Test(forward, a_collector_that_hangs_up_gets_the_rest_and_nothing_twice) {
  struct scene s = scene_begin((struct tt_collector_rules){ .hang_up_after = 7 }, 0);
  struct tt_stream t = tt_stream_make(26, 6, 5, 3000);

  write_all(s.f, &t, 10000);
  cr_assert(tt_collector_wait(s.collector, has_connections, 4));
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  struct tt_collector_seen seen = seen_by(&s);
  cr_assert_geq(seen.connections, 4);
  cr_assert_eq(seen.batches, t.batches);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

Test(forward, records_acked_late_are_sent_again_but_stored_once) {
  struct scene s = scene_begin((struct tt_collector_rules){ .no_acks = true }, 0);
  struct tt_stream t = tt_stream_make(26, 4, 5, 3000);

  write_all(s.f, &t, 10000);
  cr_assert(tt_collector_wait(s.collector, has_records, 10));
  tt_collector_down(s.collector);
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  tt_collector_up(s.collector);
  cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS), 0);
  cr_assert_geq(status_of(s.f).reconnects, 1);
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

Test(forward, the_first_connection_may_take_its_time) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
  struct tt_stream t = tt_stream_make(22, 3, 4, 1000);

  ta_forward_close(s.f, 0);
  tt_collector_down(s.collector);
  s.f = dial(&s, 0);
  write_all(s.f, &t, 512);
  cr_assert_eq(ta_forward_sync(s.f, 300), TA_E_TIMEOUT);
  cr_assert(until(s.f, error_says, "Connection refused"));
  tt_collector_up(s.collector);
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  tt_stream_free(&t);
  scene_end(&s);
}

Test(forward, no_more_is_on_the_way_than_the_credit_allows) {
  enum { WINDOW = 100000 };
  struct scene s = scene_begin((struct tt_collector_rules){ .credit_bytes = WINDOW }, 0);
  struct tt_stream t = tt_stream_make(26, 5, 10, 30000);

  write_all(s.f, &t, 65536); /* the collector reports a breach of its credit */
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  cr_assert_leq(seen_by(&s).max_on_the_way, WINDOW);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

Test(forward, a_silent_collector_is_left_after_three_heartbeats) {
  struct scene s = scene_begin((struct tt_collector_rules){ .heartbeat_ms = 50, .mute = true }, 0);
  struct tt_stream t = tt_stream_make(26, 2, 4, 1000);

  write_all(s.f, &t, 4096);
  cr_assert(until(s.f, error_says, "collector silent"));
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

/* The status shows the reason of the GOAWAY only until the agent is welcome again. */
Test(forward, goaway_is_followed_and_its_wait_is_kept) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
  struct tt_stream t = tt_stream_make(26, 2, 4, 1000);
  struct effects effects = { .lock = PTHREAD_MUTEX_INITIALIZER, .about = "goes away" };
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = tt_collector_address(s.collector),
                                      .certs = s.dir,
                                      .service = "shop",
                                      .log = keep_warning,
                                      .log_self = &effects };
  struct timespec start, now;

  ta_forward_close(s.f, TT_PATIENCE_MS);
  uint64_t before = seen_by(&s).connections;
  tt_collector_rule(s.collector, (struct tt_collector_rules){ .goaway_wait_ms = 300 });
  cr_assert_eq(ta_forward_open(&config, &s.f), 0);
  clock_gettime(CLOCK_MONOTONIC, &start);
  write_all(s.f, &t, 4096);
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  clock_gettime(CLOCK_MONOTONIC, &now);
  cr_assert_geq((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000, 300);
  cr_assert_str_eq(effects.text, "collector goes away: shutdown");
  cr_assert_eq(seen_by(&s).connections, before + 2);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

/* Streams with more than the spool holds. */

Test(forward, a_full_spool_drops_whole_generations_and_says_so_exactly) {
  enum { MIB = 1 << 20 };
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, MIB);
  struct tt_stream t = tt_stream_make(26, 40, 5, 20000); /* 4 MB */

  ta_forward_close(s.f, 0);
  tt_collector_down(s.collector);
  s.f = dial(&s, MIB);
  write_all(s.f, &t, 65536);
  struct ta_forward_status status = status_of(s.f);
  cr_assert_leq(status.spool_bytes_peak, MIB);
  cr_assert_gt(status.spool_bytes_peak, MIB * 8 / 10);
  cr_assert_gt(status.lost_generations, 25);
  cr_assert_not_null(strstr(status.last_loss, "raise spool_bytes"), "%s", status.last_loss);
  cr_assert_eq(status.produced_bytes, status.lost_bytes + status.spool_bytes);
  tt_collector_up(s.collector);
  cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS), 0);
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
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
  scene_end(&s);
}

Test(forward, a_generation_larger_than_the_spool_flows_through) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 1 << 20);
  struct tt_stream t = tt_stream_make(26, 1, TT_LESS(200, 50), 60000); /* 12 MB, or 3 */

  for (size_t at = 0; at < t.n; at += 60000) {
    size_t n = t.n - at < 60000 ? t.n - at : 60000;
    cr_assert_eq(ta_forward_write(s.f, t.bytes + at, n), 0);
    cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS), 0); /* waits, as a slow writer would */
  }
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  cr_assert_eq(seen_by(&s).n_losses, 0);
  cr_assert_eq(seen_by(&s).generations, 1);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

Test(forward, a_generation_that_went_out_in_part_is_abandoned_and_the_next_is_whole) {
  struct scene s = scene_begin((struct tt_collector_rules){ .deaf = true }, 1 << 20);
  struct tt_stream big = tt_stream_make(26, 2, 60, 60000); /* 3.6 MB each */

  cr_assert(tt_collector_wait(s.collector, has_connections, 1));
  size_t one = 16 + (big.n - 16) / 2;
  cr_assert_eq(ta_forward_write(s.f, big.bytes, 400000), 0);
  poll(NULL, 0, 50); /* some of it is sent by now; how much does not matter */
  for (size_t at = 400000; at < one; at += 60000)
    ta_forward_write(s.f, big.bytes + at, one - at < 60000 ? one - at : 60000);
  cr_assert_eq(status_of(s.f).lost_generations, 1);
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS), 0);
  for (size_t at = one; at < big.n; at += 60000) {
    ta_forward_write(s.f, big.bytes + at, big.n - at < 60000 ? big.n - at : 60000);
    cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS), 0);
  }
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
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
  scene_end(&s);
}

/* Streams of any bytes. */

Test(forward, broken_bytes_are_carried_as_they_are) {
  static const size_t cuts[] = { 0, 1, 15, 16, 17, 30, 2000 };
  struct tt_stream t = tt_stream_make(23, 2, 3, 1000);

  memset(t.bytes + 2500, 0xff, 200);
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
    struct tt_stream part = { .bytes = t.bytes + (i == 6 ? 5 : 0),
                              .n = i == 6 ? t.n - 5 : cuts[i] };
    if (i == 5) part.n = t.n;
    cr_assert_eq(ta_forward_write(s.f, part.bytes, part.n), 0);
    cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
    expect_trace(&s, &part);
    scene_end(&s);
  }
  tt_stream_free(&t);
}

/* Streams with a limited rate. */

Test(forward, the_rate_cap_holds) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 4 << 20);
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
  cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS), 0);
  clock_gettime(CLOCK_MONOTONIC, &start);
  write_all(s.f, &t, 65536);
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  clock_gettime(CLOCK_MONOTONIC, &now);
  double seconds =
      (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) * 1e-9;
  cr_assert_geq(seconds, 0.35, "1 MB at 2 MB/s took %.2f s", seconds);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

/* Returns how many milliseconds a header and `batches` batches of 100 bytes take at this rate. */
static long ms_at_rate(uint64_t rate_bytes_s, unsigned batches) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
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
  if (batches == 0) t.n = 16; /* no end mark, either */
  write_all(s.f, &t, t.n);
  cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS), 0, "at %lu bytes/s",
               (unsigned long)rate_bytes_s);
  clock_gettime(CLOCK_MONOTONIC, &now);
  ta_forward_close(s.f, 0);
  tt_stream_free(&t);
  scene_end(&s);
  return (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
}

Test(forward, a_small_rate_is_kept_exactly) {
  struct tt_stream t = tt_stream_make(26, 1, 5, 100);

  ms_at_rate(1, 0); /* the first frame is sent at once, at any rate */
  /* The time that all frames but the last take, since the last one is sent on credit: the header and five batches, each with 32
   * bytes more. */
  long ms = LONG_MAX, due = (long)(t.n - 16) * 1000 / 400, most = due * 2 + 1000;
  for (int i = 0; i < 10 && ms > most; i++) { /* a busy machine may have slowed the other tries */
    long now = ms_at_rate(400, 5);
    cr_assert_geq(now, due * 8 / 10);
    if (now < ms) ms = now;
  }
  cr_assert_leq(ms, most);
  tt_stream_free(&t);
}

/* A collector that moves. */

Test(forward, a_ready_file_is_read_again_at_each_connect) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
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
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  expect_trace(&s, &t);
  unlink(path);
  tt_stream_free(&t);
  scene_end(&s);
}

/* A collector that loses what it acked. */

Test(forward, a_collector_that_lost_what_it_acked_gets_a_new_stream_and_is_told_of_the_loss) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
  struct tt_stream t = tt_stream_make(26, 4, 5, 3000);
  struct effects effects = { .lock = PTHREAD_MUTEX_INITIALIZER, .about = "new stream" };
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = tt_collector_address(s.collector),
                                      .certs = s.dir,
                                      .service = "shop",
                                      .log = keep_warning,
                                      .log_self = &effects };
  size_t one = (t.n - 16) / 4, acked = 16 + one + one / 2;

  ta_forward_close(s.f, TT_PATIENCE_MS);
  cr_assert_eq(ta_forward_open(&config, &s.f), 0);
  cr_assert_eq(ta_forward_write(s.f, t.bytes, acked), 0);
  cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS),
               0); /* the first generation, and some of the second */
  struct ta_forward_status before = status_of(s.f);
  tt_collector_down(s.collector);
  tt_collector_rule(s.collector, (struct tt_collector_rules){ .forget = true });
  cr_assert_eq(ta_forward_write(s.f, t.bytes + acked, t.n - acked), 0);
  tt_collector_up(s.collector);
  cr_assert_eq(ta_forward_sync(s.f, TT_PATIENCE_MS), 0);
  struct ta_forward_status after = status_of(s.f);
  cr_assert_eq(after.begun_anew, 1);
  cr_assert_str_neq(after.stream, before.stream);
  cr_assert_eq(after.lost_generations, 2);
  cr_assert_eq(after.lost_bytes, 2 * one);
  cr_assert_eq(after.acked_bytes, 2 * one);
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  cr_assert_not_null(strstr(effects.text, "but acked 10: goes on as a new stream, what was acked"),
                     "%s", effects.text);

  struct tt_collector_seen seen = seen_by(&s);
  cr_assert_str_eq(seen.stream, after.stream);
  cr_assert_eq(seen.n_losses, 1);
  cr_assert_eq(seen.losses[0].first_gen, 1);
  cr_assert_eq(seen.losses[0].last_gen, 2);
  cr_assert_eq(seen.losses[0].bytes, 2 * one);
  cr_assert_eq(seen.losses[0].reason, 6); /* LOSS_FORGOTTEN */
  cr_assert_eq(seen.closed_lost_batches, seen.losses[0].batches);
  memmove(t.bytes + 16, t.bytes + 16 + 2 * one, 2 * one);
  t.n = 16 + 2 * one;
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

/* Each thread gets the text of its own error, even if other threads fail at the same time. */

static pthread_barrier_t all_failed;

static void *fail_by_name(void *name) {
  struct ta_forward_config config = { .server = "127.0.0.1:9", .certs = "/", .service = name };
  ta_forward *f;
  bool own = true;

  for (int i = 0; i < 20; i++) {
    own &= ta_forward_open(&config, &f) == TA_E_CONFIG;
    pthread_barrier_wait(&all_failed);
    own &= strstr(ta_strerror(TA_E_CONFIG), name) != NULL;
    pthread_barrier_wait(&all_failed);
  }
  return own ? name : NULL;
}

Test(forward, words_for_an_error_belong_to_its_thread) {
  enum { THREADS = 32 };
  static char names[THREADS][32];
  pthread_t thread[THREADS];

  pthread_barrier_init(&all_failed, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    snprintf(names[i], sizeof names[i], "no name %d.", i);
    cr_assert_eq(pthread_create(&thread[i], NULL, fail_by_name, names[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *own;
    pthread_join(thread[i], &own);
    cr_assert_eq(own, names[i]);
  }
  cr_assert_str_eq(ta_strerror(TA_E_CONFIG), "configuration is incomplete or wrong");
}
