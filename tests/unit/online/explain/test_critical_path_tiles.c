/* SPDX-License-Identifier: Apache-2.0 */
/* For any interval of any goroutine of a real trace, the pieces of the explanation tile the
 * interval, and their lengths add up to its length. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "online/explain/critical_path.h"
#include "online/spans/pull.h"
#include "support/patience.h"
#include "support/stored.h"

#ifdef TC_SANITIZED
enum { INTERVALS = 50, TRACE_BYTES_MAX = 1 << 20 };
#else
enum { INTERVALS = 500, TRACE_BYTES_MAX = 8 << 20 };
#endif
enum { INTERVALS_FULL = 1000, TRACES_MIN = 5 };

static struct tb_mem mem;
static uint64_t followed;
static size_t walks;
static int intervals;

/* splitmix64: the same numbers in each run. */
static uint64_t random_next(uint64_t *seed) {
  uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static tb_rc add_open(void *self, const struct to_span *span) {
  return to_timeline_add(self, span, 0, 0);
}

static void read_trace(const struct tt_stored *trace, struct to_timeline *t) {
  const struct to_spans_config config = { .wanted =
                                              TO_WANT(GOROUTINE) | TO_WANT(LIFE) | TO_WANT(RANGE) };
  struct to_part part = { .trace = trace->bytes, .header = 16, .begin = 16, .end = trace->len };
  const struct to_generation *gen;
  const struct to_span *span;
  struct to_span_pull *pull;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  to_timeline_init(t, &mem, INT64_MIN, INT64_MAX);
  cr_assert_eq(to_span_pull_new(&mem, NULL, TO_READER_BYTES_STAY, &config, to_part_source(&part),
                                &diag, &pull),
               TB_OK);
  while (to_span_pull_next(pull, &span, &gen) == TB_OK)
    cr_assert_eq(to_timeline_add(t, span, 0, 0), TB_OK);
  cr_assert_eq(to_spans_open(to_span_pull_spans(pull), add_open, t), TB_OK);
  to_span_pull_free(pull);
}

/* Returns a time between the goroutine's first and last one, or a little outside. */
static to_ns some_time(const struct to_history *history, uint64_t *seed) {
  to_ns first = history->span[0].from, last = history->span[history->n - 1].until;
  uint64_t length = (uint64_t)(last - first);

  return first - (to_ns)(length / 8) + (to_ns)(random_next(seed) % (length + length / 4 + 1));
}

static void check_tiles(const struct to_path *path, to_ns from, to_ns until, const char *name) {
  uint64_t sum = 0;
  to_ns at = from;

  for (size_t i = 0; i < path->n; i++) {
    const struct to_path_piece *p = &path->piece[i];
    cr_assert_eq(p->from, at, "%s", name);
    cr_assert_lt(p->from, p->until);
    cr_assert_leq(p->stopped_ns + p->assist_ns, (uint64_t)(p->until - p->from));
    followed += p->depth > 0;
    sum += (uint64_t)(p->until - p->from);
    at = p->until;
  }
  cr_assert_eq(at, until, "%s", name);
  cr_assert_eq(sum, (uint64_t)(until - from), "%s", name);
}

static void explain_intervals(const struct tt_stored *trace) {
  uint64_t seed = 1;
  struct to_timeline t;
  struct to_path path;

  read_trace(trace, &t);
  for (int i = 0; i < intervals && t.n > 0; i++) {
    const struct to_history *history = &t.history[random_next(&seed) % t.n];
    if (history->n == 0) continue;
    to_ns a = some_time(history, &seed), b = some_time(history, &seed);
    to_ns from = a < b ? a : b, until = a < b ? b : a;
    cr_assert_eq(to_critical_path(&t, history->life, from, until, &mem, &path), TB_OK);
    check_tiles(&path, from, until, trace->path);
    to_path_fini(&path);
    walks++;
  }
  to_timeline_fini(&t);
  cr_assert_eq(mem.bytes, 0);
}

Test(critical_path_tiles, any_interval_of_any_goroutine) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  intervals = tt_full() ? INTERVALS_FULL : INTERVALS;
  cr_assert_geq(tt_each_stored("tests/data", TRACE_BYTES_MAX, explain_intervals), TRACES_MIN);
  if (tt_full()) tt_each_stored("../shared/traces/corpus", TRACE_BYTES_MAX, explain_intervals);
  cr_assert_geq(walks, TRACES_MIN * (size_t)intervals);
  cr_assert_geq(followed, TRACES_MIN * (size_t)intervals);
}
