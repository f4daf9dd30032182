/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/trace_file/trace_range.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/times.h"
#include "online/analysis/filter.h"
#include "online/event/generation.h"
#include "tools/tracectl/trace_file/index.h"

enum { SLICE_EVENTS_MAX = 64 };

static bool by_number(const struct tk_trace_range_ask *ask, const struct tk_index_row *row) {
  const struct tk_selector *s = &ask->which;

  return row->gen >= s->first_gen && (s->last_gen == 0 || row->gen <= s->last_gen);
}

static bool by_time(const struct tk_trace_range_ask *ask, const struct tk_index_row *row) {
  const struct tk_selector *s = &ask->which;
  bool too_early =
      s->since_wall_ns != 0 && row->end_wall_ns != 0 && row->end_wall_ns < s->since_wall_ns;
  bool too_late = s->until_wall_ns != 0 && row->begin_wall_ns > s->until_wall_ns;

  return !too_early && !too_late;
}

static bool has_times(const struct tk_index *index) {
  for (size_t i = 0; i < index->n; i++)
    if (index->row[i].begin_wall_ns != 0) return true;
  return false;
}

static tb_rc nothing(const struct tk_index *index, struct tb_diag *diag) {
  char begin[TC_TIME_BYTES], end[TC_TIME_BYTES];

  if (index->n == 0) {
    if (index->fault.rc != TB_OK) *diag = index->fault;
    return tb_fail(diag, TB_NOTFOUND, "no generation is in it");
  }
  tc_time_format(index->row[0].begin_wall_ns, begin);
  if (index->n == 1)
    return tb_fail(diag, TB_NOTFOUND,
                   "no such generation: this trace has only %" PRIu64 ", which began %s",
                   index->row[0].gen, begin);
  tc_time_format(index->row[index->n - 1].begin_wall_ns, end);
  return tb_fail(diag, TB_NOTFOUND,
                 "no such generation: this trace has %" PRIu64 " to %" PRIu64
                 ", which began %s to %s",
                 index->row[0].gen, index->row[index->n - 1].gen, begin, end);
}

/* Adds runs of rows that have the goroutine. */
static void add_runs(const struct tk_index *index, const struct tk_trace_range_ask *ask,
                     size_t first, size_t last, struct tk_trace_ranges *out) {
  bool follows = false;

  for (size_t i = first; i <= last; i++) {
    const struct tk_index_row *row = &index->row[i];
    bool has = ask->goroutine == 0 || tk_index_has_goroutine(row, (int64_t)ask->goroutine);
    if (has && follows)
      out->part[out->n - 1].end = row->offset + row->bytes;
    else if (has)
      out->part[out->n++] =
          (struct tk_trace_range){ index->header_bytes, row->offset, row->offset + row->bytes };
    follows = has;
  }
}

void tk_trace_ranges_fini(struct tk_trace_ranges *parts) {
  free(parts->part);
  *parts = (struct tk_trace_ranges){ 0 };
}

static tb_rc choose(const struct tk_index *index, const struct tk_trace_range_ask *ask,
                    struct tb_diag *diag, struct tk_trace_ranges *out) {
  bool timed = ask->which.since_wall_ns != 0 || ask->which.until_wall_ns != 0;
  size_t first = index->n, last = 0;

  if (timed && index->n > 0 && !has_times(index))
    return tb_fail(diag, TB_NOTFOUND,
                   "traces before Go 1.25 have no wall clock: use --gen, see 'tracectl index'");
  for (size_t i = 0; i < index->n; i++) {
    if (!by_number(ask, &index->row[i]) || !by_time(ask, &index->row[i])) continue;
    if (first == index->n) first = i;
    last = i;
  }
  if (first == index->n) return nothing(index, diag);
  if (timed && first > 0 && index->row[first].estimated && by_number(ask, &index->row[first - 1]))
    first--;
  if (timed && last + 1 < index->n && index->row[last].estimated &&
      by_number(ask, &index->row[last + 1]))
    last++;
  out->part = calloc(last - first + 1, sizeof *out->part);
  if (out->part == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  add_runs(index, ask, first, last, out);
  if (out->n > 0) return TB_OK;
  tk_trace_ranges_fini(out);
  return tb_fail(diag, TB_NOTFOUND,
                 "goroutine %" PRIu64 " does nothing in generations %" PRIu64 "..%" PRIu64,
                 ask->goroutine, index->row[first].gen, index->row[last].gen);
}

tb_rc tk_trace_ranges_find(const char *verb, const char *path, const struct tk_trace_range_ask *ask,
                           struct tb_diag *diag, struct tk_trace_ranges *out) {
  struct tk_index index;

  TB_TRY(tk_selector_check(&ask->which, diag));
  if (strcmp(path, "-") == 0)
    return tb_fail(diag, TB_BROKEN,
                   "--gen, --since, --until and --goroutine need a file: standard input can be "
                   "read only once");
  if (!tk_index_find(verb, path, ask->goroutine != 0, &index)) return TB_IO;
  tb_rc rc = choose(&index, ask, diag, out);
  tk_index_fini(&index);
  return rc;
}

uint64_t tk_wall_of(const struct to_clock *clock, to_ns time) {
  return (uint64_t)clock->wall_s * UINT64_C(1000000000) + (uint64_t)clock->wall_ns +
         (uint64_t)(time - clock->trace_ns);
}

static bool is_inside(const struct tk_trace_range_ask *ask, uint64_t wall_ns) {
  const struct tk_selector *s = &ask->which;

  return wall_ns >= s->since_wall_ns && (s->until_wall_ns == 0 || wall_ns <= s->until_wall_ns);
}

static tb_rc hand_on_of(struct tk_trace_range_sink *s, const struct to_generation *gen,
                        const struct to_event *events, size_t n) {
  struct to_event of[SLICE_EVENTS_MAX];
  size_t found = 0;

  for (size_t i = 0; i < n; i++) {
    if (to_event_concerns(&events[i], (int64_t)s->ask->goroutine)) of[found++] = events[i];
    if (found < SLICE_EVENTS_MAX) continue;
    TB_TRY(s->to.events(s->to.self, gen, of, found));
    found = 0;
  }
  s->any |= found > 0;
  return found > 0 ? s->to.events(s->to.self, gen, of, found) : TB_OK;
}

/* Times rise within a slice, so the matching events are one stretch. */
tb_rc tk_trace_range_events(void *self, const struct to_generation *gen,
                            const struct to_event *events, size_t n) {
  struct tk_trace_range_sink *s = self;
  struct to_clock clock;
  size_t first = 0, end = n;

  if (gen != NULL && to_generation_clock(gen, &clock)) {
    while (first < n && !is_inside(s->ask, tk_wall_of(&clock, events[first].time))) first++;
    for (end = first; end < n && is_inside(s->ask, tk_wall_of(&clock, events[end].time));) end++;
  }
  if (s->ask->goroutine != 0) return hand_on_of(s, gen, events + first, end - first);
  if (gen == NULL && !s->any) return TB_OK;
  s->any |= first < end;
  return first < end ? s->to.events(s->to.self, gen, events + first, end - first) : TB_OK;
}
