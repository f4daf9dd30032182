/* SPDX-License-Identifier: Apache-2.0 */
/* A real trace of Go 1.26 with several generations. The test hands them over as the store does, and turns the loop itself. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>

#include "collector/analysis/private.h"
#include "online/analysis/analysis.h"
#include "online/trace/reader.h"
#include "proto/meta.pb-c.h"
#include "proto/report.pb-c.h"
#include "support/patience.h"
#include "unit/collector/store/memory_store.h"
#include "wire/split.h"

enum { GENS_MAX = 64, HEADER_BYTES = 16 };

struct bench {
  uv_loop_t uv;
  struct tc_config config;
  struct tc_metrics metrics;
  struct tc_reports *reports;
  struct tc_scheduler *u;
  bool full; /* the store has no room */
  struct tc_verdict verdicts[GENS_MAX];
  size_t verdict_count;
  char path[64];
  unsigned char *bytes;
  size_t len;
  uint64_t at[GENS_MAX + 1]; /* offset at which generation i begins */
  size_t gens;
};

static void load_trace(struct bench *b, const char *name) {
  static unsigned char packed[1 << 20];
  const char *source = getenv("TC_SOURCE_DIR");
  char path[512];
  size_t n;

  snprintf(path, sizeof path, "%s/tests/data/%s", source != NULL ? source : ".", name);
  FILE *file = fopen(path, "rb");
  cr_assert_not_null(file, "%s", path);
  n = fread(packed, 1, sizeof packed, file);
  fclose(file);
  unsigned long long size = ZSTD_getFrameContentSize(packed, n);
  b->len = size < (1 << 28) ? (size_t)size : 16 << 20;
  b->bytes = malloc(b->len);
  b->len = ZSTD_decompress(b->bytes, b->len, packed, n);
  cr_assert_not(ZSTD_isError(b->len));
}

/* Go 1.26: an end mark closes each generation. */
static void find_generations(struct bench *b) {
  struct tb_mem mem;
  struct tw_split split;
  struct tw_item item;
  size_t at = 0, used;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tw_split_init(&split, &mem);
  b->at[0] = HEADER_BYTES;
  while (tw_split_feed(&split, b->bytes + at, b->len - at, &used, &item) == TB_OK) {
    at += used;
    if (item.kind == TW_ITEM_END_MARK) b->at[++b->gens] = at;
  }
  tw_split_fini(&split);
  cr_assert_gt(b->gens, 2);
}

static void write_trace(struct bench *b) {
  int fd = open(b->path, O_WRONLY | O_TRUNC);

  cr_assert_eq(write(fd, b->bytes, b->len), (ssize_t)b->len);
  close(fd);
}

static bool submit(void *self, struct tc_submit *msg) {
  struct bench *b = self;

  if (b->full) return false;
  cr_assert_eq(msg->kind, TC_SUBMIT_VERDICT);
  b->verdicts[b->verdict_count++] = msg->verdict;
  tc_submit_free(msg);
  return true;
}

static int open_file(void *self, const struct tc_reply *stored) {
  (void)self;
  return open(stored->path, O_RDONLY);
}

static void bench_begin_with(struct bench *b, uint64_t memory_max, uint64_t waiting_max) {
  struct tb_diag diag;

  memset(b, 0, sizeof *b);
  load_trace(b, "g26-gens.trace.zst");
  find_generations(b);
  strcpy(b->path, "/tmp/tt_understand_XXXXXX");
  close(mkstemp(b->path));
  write_trace(b);
  tc_config_init(&b->config);
  b->config.top_loops = 1;
  b->config.analysis_memory_max = memory_max;
  b->config.analysis_waiting_max = waiting_max;
  cr_assert_eq(tc_config_finish(&b->config, &diag), TB_OK);
  uv_loop_init(&b->uv);
  cr_assert_eq(tc_reports_new(1 << 20, &b->reports), TB_OK);
  struct tc_submit_sink store = { b, submit };
  struct tc_scheduler_env env = { .uv = &b->uv,
                                  .config = &b->config,
                                  .metrics = &b->metrics,
                                  .reports = b->reports,
                                  .store = store,
                                  .files = b,
                                  .open_file = open_file };
  cr_assert_eq(tc_scheduler_new(&env, &b->u), TB_OK);
}

static void bench_begin_within(struct bench *b, uint64_t memory_max) {
  bench_begin_with(b, memory_max, 1 << 16);
}

static void bench_begin_waiting(struct bench *b, uint64_t waiting_max) {
  bench_begin_with(b, 1 << 30, waiting_max);
}

static void bench_begin(struct bench *b) {
  bench_begin_within(b, 1 << 30);
}

static void bench_end(struct bench *b) {
  tc_scheduler_close(b->u);
  uv_run(&b->uv, UV_RUN_DEFAULT);
  cr_assert_eq(uv_loop_close(&b->uv), 0);
  tc_scheduler_free(b->u);
  cr_assert_eq(b->metrics.analysis_bytes, 0, "all memory has come back");
  cr_assert_eq(b->metrics.generations_waiting, 0);
  tc_reports_free(b->reports);
  tc_config_fini(&b->config);
  unlink(b->path);
  free(b->bytes);
}

static void store_generation_of(struct bench *b, unsigned char stream, size_t i, bool new_run,
                                bool last) {
  struct tc_reply *stored = tc_reply_new(TC_REPLY_STORED, 0, stream, 0);

  stored->stream_id[0] = stream;
  stored->gen = i + 1;
  stored->new_run = new_run;
  stored->stream_closed = last;
  strcpy(stored->path, b->path);
  strcpy(stored->service, "shop");
  strcpy(stored->instance, "host:1");
  stored->offset = b->at[i];
  stored->len = b->at[i + 1] - b->at[i];
  tc_scheduler_reply(b->u, stored);
}

static void store_generation(struct bench *b, size_t i, bool new_run, bool last) {
  store_generation_of(b, 3, i, new_run, last);
}

static unsigned turn_until_idle(struct bench *b) {
  unsigned turns = 0;

  for (; !tc_scheduler_is_idle(b->u); turns++) uv_run(&b->uv, UV_RUN_NOWAIT);
  return turns;
}

static tb_rc count_report(void *self, const struct tc_report *report) {
  cr_assert_str_eq(report->service, "shop");
  ++*(unsigned *)self;
  return TB_OK;
}

/* A reader is a thread of its own, which waits for the loop. */
struct reader {
  struct bench *b;
  const char *kind;
  unsigned n;
  atomic_bool ended;
};

static void *read_reports(void *self) {
  struct reader *reader = self;
  struct tc_report_select select = { .kind = reader->kind };

  /* On a busy machine the loop may not turn during a reader's whole wait. */
  for (int tries = 0; tries < TT_PATIENCE_S && reader->n < TO_WINDOWS; tries++) {
    reader->n = 0;
    cr_assert_eq(tc_reports_collect(reader->b->reports, &select, count_report, &reader->n), TB_OK);
  }
  atomic_store(&reader->ended, true);
  return NULL;
}

static unsigned reports_of(struct bench *b, const char *kind) {
  struct reader reader = { .b = b, .kind = kind };
  pthread_t thread;

  cr_assert_eq(pthread_create(&thread, NULL, read_reports, &reader), 0);
  while (!atomic_load(&reader.ended)) uv_run(&b->uv, UV_RUN_NOWAIT);
  pthread_join(thread, NULL);
  return reader.n;
}

static tb_rc ignore_events(void *self, const struct to_generation *gen,
                           const struct to_event *events, size_t n) {
  (void)self, (void)gen, (void)events, (void)n;
  return TB_OK;
}

static uint64_t events_of_the_whole(const struct bench *b) {
  struct to_reader *reader;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_reader_new(&mem, &(struct to_limits){ 0 }, 0,
                             (struct to_event_sink){ NULL, ignore_events }, NULL, &reader),
               TB_OK);
  cr_assert_eq(to_reader_read(reader, b->bytes, b->len), TB_OK);
  uint64_t events = to_reader_written(reader);
  to_reader_free(reader);
  return events;
}

Test(understand, a_streams_generations_are_ordered_one_by_one_as_one_trace) {
  struct bench b;
  int64_t before = INT64_MIN;
  uint64_t events = 0;

  bench_begin(&b);
  for (size_t i = 0; i < b.gens; i++) store_generation(&b, i, i == 0, false);
  turn_until_idle(&b);
  cr_assert_eq(b.verdict_count, b.gens);
  for (size_t i = 0; i < b.gens; i++) {
    struct tc_verdict *v = &b.verdicts[i];

    cr_assert_eq(v->code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "%s", v->reason);
    cr_assert_eq(v->gen, i + 1);
    cr_assert_gt(v->events, 1);
    cr_assert_gt(v->first_ns, before, "time goes on over generations");
    before = v->last_ns;
    events += v->events;
  }
  cr_assert_eq(events, events_of_the_whole(&b));
  cr_assert_eq(b.metrics.generations_ordered_total, b.gens);
  cr_assert_eq(reports_of(&b, "syscall"), TO_WINDOWS);
  cr_assert_eq(reports_of(&b, "stw"), TO_WINDOWS);
  bench_end(&b);
}

Test(understand, a_broken_generation_is_named_and_the_next_begins_anew) {
  struct bench b;

  bench_begin(&b);
  /* The last batch header of the second generation loses its kind. */
  memset(b.bytes + b.at[1] + 2000, 0xff, 40);
  write_trace(&b);
  for (size_t i = 0; i < 3; i++) store_generation(&b, i, i == 0, false);
  turn_until_idle(&b);
  cr_assert_eq(b.verdict_count, 3);
  cr_assert_eq(b.verdicts[0].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  cr_assert_eq(b.verdicts[1].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN);
  cr_assert_gt(strlen(b.verdicts[1].reason), 5);
  cr_assert_geq(b.verdicts[1].offset, b.at[1]);
  cr_assert_lt(b.verdicts[1].offset, b.at[2]);
  cr_assert_eq(b.verdicts[2].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "%s",
               b.verdicts[2].reason);
  bench_end(&b);
}

Test(understand, a_hole_before_a_generation_begins_a_new_epoch) {
  struct bench b;

  bench_begin(&b);
  store_generation(&b, 0, true, false);
  store_generation(&b, 2, true, false);
  turn_until_idle(&b);
  cr_assert_eq(b.verdict_count, 2);
  cr_assert_eq(b.verdicts[1].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "%s",
               b.verdicts[1].reason);
  bench_end(&b);
}

/* G3: a version that the collector does not know yet; its bytes are kept. */
Test(understand, an_unknown_header_is_unsupported) {
  struct bench b;

  bench_begin(&b);
  memcpy(b.bytes, "go 1.99 trace\0\0\0", HEADER_BYTES);
  write_trace(&b);
  store_generation(&b, 0, true, false);
  turn_until_idle(&b);
  cr_assert_eq(b.verdicts[0].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_UNSUPPORTED);
  bench_end(&b);
}

Test(understand, too_much_for_the_budget_is_too_large_and_leaves_nothing) {
  struct bench b;

  bench_begin(&b);
  b.config.agents_generation_bytes_max = 1000;
  store_generation(&b, 0, true, false);
  turn_until_idle(&b);
  cr_assert_eq(b.verdicts[0].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_TOO_LARGE);
  cr_assert_eq(b.metrics.analysis_bytes, 0);
  cr_assert_eq(b.metrics.generations_left_out_total, 1);
  bench_end(&b);
}

/* Each stream is far from its own limit, but a peer could open any number of streams. */
Test(understand, all_streams_together_stay_within_their_memory) {
  const uint64_t memory_max = 8 << 20;
  struct tc_verdict *last;
  struct bench b;

  bench_begin_within(&b, memory_max);
  do {
    cr_assert_lt(b.verdict_count, GENS_MAX, "nothing was refused");
    store_generation_of(&b, (unsigned char)(b.verdict_count + 1), 0, true, false);
    turn_until_idle(&b);
    last = &b.verdicts[b.verdict_count - 1];
    cr_assert_leq(b.metrics.analysis_bytes, memory_max);
  } while (last->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  cr_assert_gt(b.verdict_count, 1, "the first has room");
  cr_assert_eq(last->code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_TOO_LARGE);
  cr_assert_str_eq(last->reason, "analysis.memory_max is reached by all streams");
  bench_end(&b);
}

Test(understand, a_missing_file_gives_no_verdict) {
  struct bench b;

  bench_begin(&b);
  unlink(b.path);
  store_generation(&b, 0, true, false);
  turn_until_idle(&b);
  cr_assert_eq(b.verdict_count, 0);
  bench_end(&b);
}

/* If the file was mapped, this read would be a SIGBUS, because the file ends before it. */
Test(understand, a_file_cut_while_it_is_read_is_that_generations_verdict) {
  struct bench b;

  bench_begin(&b);
  store_generation(&b, 0, true, false);
  store_generation(&b, 1, false, false);
  cr_assert_eq(truncate(b.path, (off_t)b.at[2] - 5000), 0);
  turn_until_idle(&b);
  cr_assert_eq(b.verdict_count, 2);
  cr_assert_eq(b.verdicts[0].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  cr_assert_eq(b.verdicts[1].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_UNREADABLE);
  cr_assert_not_null(strstr(b.verdicts[1].reason, "cannot be read"), "%s", b.verdicts[1].reason);
  write_trace(&b);
  store_generation(&b, 2, true, false);
  turn_until_idle(&b);
  cr_assert_eq(b.verdicts[2].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  bench_end(&b);
}

/* A bad sector: each read of these bytes fails. */
static uint64_t unreadable_from = UINT64_MAX;

ssize_t pread(int fd, void *to, size_t n, off_t offset) {
  if ((uint64_t)offset + n <= unreadable_from) return syscall(SYS_pread64, fd, to, n, offset);
  errno = EIO;
  return -1;
}

Test(understand, a_read_error_is_that_generations_verdict_and_leaves_nothing) {
  struct bench b;

  bench_begin(&b);
  unreadable_from = b.at[1] + 100;
  for (size_t i = 0; i < 3; i++) {
    store_generation(&b, i, i == 0, false);
    turn_until_idle(&b);
    unreadable_from = i == 0 ? unreadable_from : UINT64_MAX;
  }
  cr_assert_eq(b.verdict_count, 3);
  cr_assert_eq(b.verdicts[0].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  cr_assert_eq(b.verdicts[1].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_UNREADABLE);
  cr_assert_not_null(strstr(b.verdicts[1].reason, strerror(EIO)), "%s", b.verdicts[1].reason);
  cr_assert_eq(b.verdicts[2].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "%s",
               b.verdicts[2].reason);
  bench_end(&b);
}

Test(understand, generations_in_work_wait_for_memory_instead_of_being_left_out) {
  struct bench b;

  bench_begin_within(&b, 256 << 20);
  b.config.analysis_slice = 2; /* ns, so short that every stream is in work at once */
  for (unsigned char stream = 1; stream <= 20; stream++)
    store_generation_of(&b, stream, 0, true, false);
  turn_until_idle(&b);
  cr_assert_eq(b.verdict_count, 20);
  for (size_t i = 0; i < 20; i++)
    cr_assert_eq(b.verdicts[i].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "%s",
                 b.verdicts[i].reason);
  bench_end(&b);
}

Test(understand, a_verdict_waits_for_room_in_the_store) {
  struct bench b;

  bench_begin(&b);
  b.full = true;
  store_generation(&b, 0, true, false);
  for (int i = 0; i < 200; i++) uv_run(&b.uv, UV_RUN_NOWAIT);
  cr_assert_eq(b.verdict_count, 0);
  cr_assert_not(tc_scheduler_is_idle(b.u));
  b.full = false;
  while (!tc_scheduler_is_idle(b.u)) uv_run(&b.uv, UV_RUN_ONCE);
  cr_assert_eq(b.verdict_count, 1);
  bench_end(&b);
}

Test(understand, a_closed_stream_leaves_its_reports_and_no_memory) {
  struct bench b;

  bench_begin(&b);
  for (size_t i = 0; i < 3; i++) store_generation(&b, i, i == 0, i == 2);
  turn_until_idle(&b);
  cr_assert_eq(b.verdict_count, 3);
  cr_assert_eq(b.metrics.analysis_bytes, 0);
  cr_assert_eq(reports_of(&b, "stw"), TO_WINDOWS);
  bench_end(&b);
}

static size_t memory_of(struct bench *b) {
  return (size_t)b->metrics.analysis_bytes;
}

/* Once, 64 reports were made after each generation, which took most of the collector's time, for no reader. */
Test(understand, a_report_that_no_reader_asks_for_is_not_made) {
  static const unsigned char id[16] = { 3 };
  struct bench b;

  bench_begin(&b);
  store_generation(&b, 0, true, false);
  turn_until_idle(&b);
  struct tc_report_set set = tc_reports_outdated(b.reports, id);
  for (unsigned w = 0; w < TO_WINDOWS; w++)
    cr_assert_eq(set.kinds[w], (1u << TO_ANALYSIS_KINDS) - 1);
  cr_assert_eq(reports_of(&b, "sched"), TO_WINDOWS);
  set = tc_reports_outdated(b.reports, id);
  for (unsigned w = 0; w < TO_WINDOWS; w++)
    cr_assert_eq(set.kinds[w], (1u << TO_ANALYSIS_KINDS) - 1 - (1u << TO_ANALYSIS_SCHED));
  cr_assert_gt(memory_of(&b), 0);
  store_generation(&b, 1, false, false);
  turn_until_idle(&b);
  set = tc_reports_outdated(b.reports, id);
  cr_assert_eq(set.kinds[0], (1u << TO_ANALYSIS_KINDS) - 1, "there are new figures");
  bench_end(&b);
}

Test(understand, a_stream_that_ended_without_a_word_leaves_its_reports) {
  struct bench b;

  bench_begin(&b);
  store_generation(&b, 0, true, false);
  turn_until_idle(&b);
  b.config.agents_abandon_after = 1;
  tc_scheduler_tick(b.u);
  turn_until_idle(&b);
  cr_assert_eq(memory_of(&b), 0);
  cr_assert_eq(reports_of(&b, "sched"), TO_WINDOWS);
  bench_end(&b);
}

Test(understand, a_queue_that_is_full_leaves_generations_out_and_makes_their_verdicts_up) {
  struct bench b;

  bench_begin_waiting(&b, 8);
  /* While the loop does not run, the first stream gets half of the places, and the next stream half of the rest. */
  for (size_t i = 0; i < 12; i++) store_generation_of(&b, 3, i % b.gens, i == 0, false);
  cr_expect_eq(b.metrics.generations_waiting, 4);
  store_generation_of(&b, 4, 0, true, false);
  store_generation_of(&b, 4, 1, false, false);
  store_generation_of(&b, 4, 2, false, false);
  cr_expect_eq(b.metrics.generations_waiting, 6);
  store_generation_of(&b, 3, 0, false, true); /* its last one: the stream's end must be seen */
  cr_expect_eq(b.metrics.generations_waiting, 7);
  cr_expect_eq(tc_scheduler_late(b.u), 9);
  cr_expect_eq(b.verdict_count, 0);
  turn_until_idle(&b);
  cr_expect_eq(b.verdict_count, 7, "those that waited come first");
  uint64_t analysed = b.metrics.events_ordered_total;
  while (tc_scheduler_late(b.u) > 0) uv_run(&b.uv, UV_RUN_NOWAIT);
  cr_expect_eq(b.verdict_count, 16);
  for (size_t i = 0; i < b.verdict_count; i++) {
    cr_expect_eq(b.verdicts[i].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
    cr_expect_gt(b.verdicts[i].events, 0);
    cr_expect_gt(b.verdicts[i].last_ns, b.verdicts[i].first_ns);
  }
  cr_expect_eq(b.metrics.events_ordered_total, analysed, "they are in no figure");
  cr_expect_eq(b.metrics.generations_left_out_total, 9);
  store_generation_of(&b, 4, 0, true, false);
  cr_expect_eq(b.metrics.generations_waiting, 1, "there is room again");
  turn_until_idle(&b);
  bench_end(&b);
}

/* The numbers of generations for which there was no room are kept for later, but only so many. */
Test(understand, beyond_the_bound_of_late_ones_the_verdict_is_that_there_was_no_time) {
  enum { LATE_MAX = 16384, WAIT = 4, BEHIND = 3 };
  struct bench b;

  bench_begin_waiting(&b, 2 * WAIT);
  for (size_t i = 0; i < WAIT + LATE_MAX; i++)
    store_generation_of(&b, 3, i % b.gens, i == 0, false);
  cr_expect_eq(tc_scheduler_late(b.u), LATE_MAX);
  cr_expect_eq(b.verdict_count, 0);
  for (size_t i = 0; i < BEHIND; i++) store_generation_of(&b, 3, i, false, false);
  cr_expect_eq(tc_scheduler_late(b.u), LATE_MAX);
  cr_assert_eq(b.verdict_count, BEHIND);
  for (size_t i = 0; i < BEHIND; i++) {
    cr_expect_eq(b.verdicts[i].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BEHIND);
    cr_expect_not_null(strstr(b.verdicts[i].reason, "lagged by 4 generations"), "%s",
                       b.verdicts[i].reason);
  }
  cr_expect_eq(b.metrics.generations_left_out_total, LATE_MAX + BEHIND);
  b.full = true; /* if the store has no room for the verdict either, none comes */
  store_generation_of(&b, 3, 0, false, false);
  cr_expect_eq(b.verdict_count, BEHIND);
  bench_end(&b);
}

/* Keeps the level for the length of the test. */
static void set_level(struct bench *b, unsigned level) {
  b->config.analysis_thin_after = UINT64_C(3600) * 1000000000;
  b->u->thinning.level = level;
  b->u->thinning.bounds = true;
}

struct thinned {
  const char *kind;
  uint64_t events, thinned;
};

static tb_rc look_for_share(void *self, const struct tc_report *report) {
  struct thinned *t = self;
  Tracecollect__V1__StreamReport *r =
      tracecollect__v1__stream_report__unpack(NULL, report->len, report->bytes);

  cr_assert_not_null(r);
  if (strcmp(r->kind, t->kind) == 0 && strcmp(r->window, "all") == 0) {
    t->events = r->events;
    t->thinned = r->thinned_events;
  }
  tracecollect__v1__stream_report__free_unpacked(r, NULL);
  return TB_OK;
}

static struct thinned thinned_of(struct bench *b, const char *kind) {
  struct tc_report_select select = { .kind = kind };
  struct thinned thinned = { .kind = kind };

  cr_assert_eq(reports_of(b, kind), TO_WINDOWS); /* now they are up to date */
  cr_assert_eq(tc_reports_collect(b->reports, &select, look_for_share, &thinned), TB_OK);
  return thinned;
}

Test(understand, a_thinned_generation_is_ordered_and_reports_state_its_events) {
  struct bench b;

  bench_begin(&b);
  set_level(&b, 1);
  for (size_t i = 0; i < b.gens; i++) store_generation(&b, i, i == 0, false);
  turn_until_idle(&b);
  cr_assert_eq(b.verdict_count, b.gens);
  for (size_t i = 0; i < b.gens; i++)
    cr_expect_eq(b.verdicts[i].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  cr_expect_eq(b.metrics.generations_ordered_total, b.gens);
  cr_expect_eq(b.metrics.generations_thinned_total, (b.gens + 1) / 2, "stream 3 begins with one");
  cr_expect_gt(b.metrics.events_ordered_total, b.metrics.events_thinned_total);
  struct thinned sched = thinned_of(&b, "sched"), stw = thinned_of(&b, "stw");
  cr_expect_eq(sched.events, b.metrics.events_ordered_total);
  cr_expect_eq(sched.thinned, b.metrics.events_thinned_total);
  cr_expect_eq(stw.events, sched.events);
  cr_expect_eq(stw.thinned, 0);
  bench_end(&b);
}

Test(understand, a_stream_that_somebody_reads_is_thinned_last) {
  struct bench b;

  bench_begin(&b);
  store_generation_of(&b, 8, 0, true, false);
  turn_until_idle(&b);
  cr_assert_eq(reports_of(&b, "sched"), TO_WINDOWS);
  set_level(&b, TC_THINNING_LEVELS / 2);
  for (size_t i = 1; i < b.gens; i++) store_generation_of(&b, 8, i, false, false);
  turn_until_idle(&b);
  cr_expect_eq(b.metrics.generations_thinned_total, 0);
  store_generation_of(&b, 9, 0, true, false); /* turn 9 of eight: not counted */
  turn_until_idle(&b);
  cr_expect_eq(b.metrics.generations_thinned_total, 1);
  bench_end(&b);
}

Test(understand, streams_that_wait_for_each_other_are_thinned_and_then_counted_again) {
  struct bench b;

  bench_begin(&b);
  b.config.analysis_thin_after = 1000;
  for (size_t i = 0; i < 2; i++)
    for (unsigned char stream = 1; stream <= 24; stream++)
      store_generation_of(&b, stream, i, i == 0, false);
  turn_until_idle(&b);
  cr_expect_gt(b.metrics.generations_thinned_total, 0);
  cr_expect_eq(b.metrics.generations_ordered_total, 48);
  for (unsigned i = 0; i <= TC_THINNING_LEVELS || b.u->thinning.level > 0; i++)
    tc_scheduler_tick(b.u);
  uint64_t thinned = b.metrics.generations_thinned_total;
  store_generation_of(&b, 1, 2, false, false);
  turn_until_idle(&b);
  cr_expect_eq(b.metrics.generations_thinned_total, thinned);
  bench_end(&b);
}

Test(understand, a_stream_of_which_an_eighth_is_counted_has_two_places) {
  struct bench b;

  bench_begin(&b);
  set_level(&b, TC_THINNING_LEVELS / 2);
  for (size_t i = 0; i < 4; i++) store_generation_of(&b, 3, i % b.gens, i == 0, false);
  store_generation_of(&b, 4, 0, true, false);
  cr_expect_eq(b.metrics.generations_waiting, 3);
  cr_expect_eq(b.metrics.generations_left_out_total, 2);
  turn_until_idle(&b);
  while (tc_scheduler_late(b.u) > 0) uv_run(&b.uv, UV_RUN_NOWAIT);
  cr_expect_eq(b.verdict_count, 5);
  bench_end(&b);
}

Test(understand, of_a_queue_from_before_the_overload_the_newest_two_are_analysed) {
  struct bench b;

  bench_begin(&b);
  for (size_t i = 0; i < b.gens; i++) store_generation(&b, i, i == 0, false);
  cr_expect_eq(b.metrics.generations_waiting, b.gens);
  set_level(&b, TC_THINNING_LEVELS / 2);
  turn_until_idle(&b);
  cr_expect_eq(b.metrics.generations_left_out_total, b.gens - 2);
  cr_assert_eq(b.verdict_count, 2);
  cr_expect_eq(b.verdicts[0].gen, b.gens - 1);
  cr_expect_eq(b.verdicts[0].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "a new epoch");
  cr_expect_eq(b.verdicts[1].gen, b.gens);
  cr_expect_eq(b.verdicts[1].code, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  while (tc_scheduler_late(b.u) > 0) uv_run(&b.uv, UV_RUN_NOWAIT);
  cr_expect_eq(b.verdict_count, b.gens);
  bench_end(&b);
}

/* Once, only one stream a second was forgotten, so programs that were killed more often made the collector grow. */
Test(understand, all_streams_that_ended_without_a_word_are_forgotten) {
  enum { STREAMS = 40 };
  struct bench b;

  bench_begin(&b);
  for (unsigned char i = 1; i <= STREAMS; i++) store_generation_of(&b, i, 0, true, false);
  turn_until_idle(&b);
  tc_scheduler_tick(b.u);
  cr_assert_gt(b.metrics.analysis_bytes, 0, "not before their time");
  b.config.agents_abandon_after = 1;
  for (int ticks = 0; ticks < STREAMS / 2 && b.metrics.analysis_bytes > 0; ticks++) {
    tc_scheduler_tick(b.u);
    turn_until_idle(&b);
  }
  cr_assert_eq(b.metrics.analysis_bytes, 0);
  bench_end(&b);
}

/* Once, streams that were cut off held all the memory for minutes, and later streams were not analysed. */
Test(understand, where_memory_is_short_silent_streams_make_room_and_no_more_than_that) {
  enum { STREAMS = 9 };
  struct bench b;

  bench_begin(&b);
  store_generation_of(&b, 1, 0, true, false);
  turn_until_idle(&b);
  uint64_t first = b.metrics.analysis_bytes;
  store_generation_of(&b, 2, 0, true, false);
  turn_until_idle(&b);
  /* The second stream has the same stacks. Some is for a generation in work. */
  uint64_t one = b.metrics.analysis_bytes - first, share = first + (STREAMS + 2) * one;
  cr_expect_lt(one, first);
  bench_end(&b);
  bench_begin_within(&b, share);
  for (unsigned char i = 1; i <= STREAMS; i++) {
    store_generation_of(&b, i, 0, true, false);
    turn_until_idle(&b);
  }
  uint64_t all = b.metrics.analysis_bytes;
  cr_assert_eq(all, first + (STREAMS - 1) * one);
  tc_scheduler_tick(b.u);
  turn_until_idle(&b);
  cr_assert_eq(b.metrics.analysis_bytes, all, "none is silent long enough");
  b.config.agents_heartbeat = 0;
  for (int ticks = 0; ticks < STREAMS; ticks++) {
    tc_scheduler_tick(b.u);
    turn_until_idle(&b);
  }
  cr_assert_leq(b.metrics.analysis_bytes, share / 4 * 3);
  cr_assert_geq(b.metrics.analysis_bytes, share / 2);
  bench_end(&b);
}
