/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/events.h"

#include <stdio.h>
#include <stdlib.h>

#include "online/spans/stacks/table.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/index.h"
#include "tools/tracectl/trace_file/trace_range.h"

struct part {
  struct tk_trace_range range;
  uint64_t before; /* generations of the place that precede it */
};

struct tk_events {
  const struct tk_place *place;
  struct part *part;
  size_t parts, next_part;
  struct tb_diag after; /* fault after the last part, if the request has no upper bound */
  struct tk_input *in;  /* of the current part */
  struct to_pull *pull;
  struct tb_diag diag;
  struct to_stack_table stacks;
  struct to_allocfree types;
  const struct to_generation *gen; /* generation of the last event */
  uint64_t gen_number, types_gen;
  bool has_clock;
  struct to_clock clock;
  bool has_goroutine; /* leave out events of other goroutines */
  int64_t goroutine;
  uint64_t before;      /* generations of the place that precede this part */
  struct to_event sync; /* a Sync that also counts them */
};

/* An index has the begin of each generation, but events may be later than the next begin: includes neighbours. */
static bool is_in_time(const struct tk_events_ask *ask, const struct tk_index *index, size_t i) {
  const struct tk_index_row *before = &index->row[i > 0 ? i - 1 : i],
                            *after = &index->row[i + 1 < index->n ? i + 1 : i];

  if (after->end_wall_ns != 0 && after->end_wall_ns < ask->first_wall_ns) return false;
  return ask->last_wall_ns == 0 || before->begin_wall_ns <= ask->last_wall_ns;
}

static bool is_wanted(const struct tk_events_ask *ask, const struct tk_index *index, size_t i) {
  const struct tk_index_row *row = &index->row[i];

  if (row->gen < ask->first_gen || (ask->last_gen != 0 && row->gen > ask->last_gen)) return false;
  if (!is_in_time(ask, index, i)) return false;
  return !ask->has_goroutine || tk_index_has_goroutine(row, ask->goroutine);
}

static bool is_before(const struct tk_events_ask *ask, const struct tk_index *index, size_t i) {
  const struct tk_index_row *before = &index->row[i > 0 ? i - 1 : i];

  if (ask->last_gen != 0 && index->row[i].gen > ask->last_gen) return false;
  return ask->last_wall_ns == 0 || before->begin_wall_ns <= ask->last_wall_ns;
}

static bool is_in(const struct tk_trace_range *part, const struct tk_index_row *row) {
  return part->end == 0 || (row->offset >= part->begin && row->offset < part->end);
}

/* Adds runs of generations, each with the generation before it. */
static void add_parts(struct tk_events *e, const struct tk_index *index,
                      const struct tk_events_ask *ask) {
  struct part *last = NULL;
  uint64_t before = 0;

  for (size_t i = 0; i < index->n; i++) {
    const struct tk_index_row *row = &index->row[i];
    if (!is_in(&e->place->part, row)) continue;
    bool leads = before++ > 0, is_new;
    if (!is_wanted(ask, index, i) && !(ask->with_details && is_before(ask, index, i))) continue;
    uint64_t begin = leads ? row[-1].offset : row->offset, end = row->offset + row->bytes;
    is_new = last == NULL || last->range.end < begin;
    if (is_new) last = &e->part[e->parts++];
    if (is_new) *last = (struct part){ { index->header_bytes, begin, end }, before - 1 - leads };
    last->range.end = end;
  }
  bool is_bounded = ask->last_gen != 0 || ask->last_wall_ns != 0 || e->place->part.end != 0;
  if (!is_bounded) e->after = index->fault;
}

static bool choose_from(struct tk_events *e, const struct tk_index *index,
                        const struct tk_events_ask *ask) {
  e->part = calloc(index->n + 1, sizeof *e->part);
  if (e->part != NULL) add_parts(e, index, ask);
  return e->part != NULL;
}

/* Uses an index for goroutines only if it already has them: making one reads every byte. */
static bool choose(struct tk_events *e, const struct tk_events_ask *wanted) {
  struct tk_events_ask ask = *wanted;
  struct tk_index index = { 0 };

  bool is_known = tk_index_load(e->place->path, &index);
  ask.has_goroutine = ask.has_goroutine && is_known && tk_index_knows_goroutines(&index);
  bool any = ask.first_gen != 0 || ask.last_gen != 0 || ask.first_wall_ns != 0 ||
             ask.last_wall_ns != 0 || ask.has_goroutine;
  if (any && !is_known) {
    if (!tk_index_find(e->place->verb, e->place->path, false, &index)) return false;
    is_known = true;
  }
  bool is_chosen = true;
  if (any) {
    is_chosen = choose_from(e, &index, &ask);
  } else {
    e->part = calloc(1, sizeof *e->part);
    is_chosen = e->part != NULL;
    if (is_chosen) e->part[e->parts++].range = e->place->part;
  }
  if (is_known) tk_index_fini(&index);
  return is_chosen;
}

static int fail(struct tk_events *e, tb_rc rc, char error[TK_QUERY_ERROR]) {
  char why[300];

  if (e->in != NULL && e->diag.offset != TB_NO_OFFSET)
    e->diag.offset = tk_input_offset(e->in, e->diag.offset);
  tb_diag_format(&e->diag, why, sizeof why);
  snprintf(error, TK_QUERY_ERROR, "%s: %s", e->place->name,
           e->diag.rc != TB_OK ? why : tb_rc_text(rc));
  return -1;
}

static void end_part(struct tk_events *e) {
  if (e->pull != NULL) tk_note_misannotated(e->place, e->in, to_pull_misannotated(e->pull));
  to_pull_free(e->pull);
  e->pull = NULL;
  if (e->in != NULL) tk_input_close(e->in);
  e->in = NULL;
  e->gen = NULL;
  e->gen_number = e->types_gen = 0;
}

static bool begin_part(struct tk_events *e, char error[TK_QUERY_ERROR]) {
  end_part(e);
  if (!tk_input_open(e->place->verb, e->place->path, &e->in)) {
    error[0] = 0; /* already reported */
    return false;
  }
  const struct part *part = &e->part[e->next_part++];
  tk_input_part(e->in, &part->range);
  e->before = part->before;
  unsigned flags = TO_READER_PAST_ANNOTATIONS | (tk_input_stays(e->in) ? TO_READER_BYTES_STAY : 0u);
  tb_rc rc = to_pull_new(&tk_mem, NULL, flags, (struct to_pull_source){ e->in, tk_input_more },
                         &e->diag, &e->pull);
  if (rc != TB_OK) fail(e, rc, error);
  if (rc == TB_OK && e->has_goroutine) to_pull_only(e->pull, e->goroutine);
  return rc == TB_OK;
}

bool tk_events_begin(const struct tk_place *place, const struct tk_events_ask *ask,
                     struct tk_events **out, char error[TK_QUERY_ERROR]) {
  struct tk_events *e = calloc(1, sizeof *e);

  snprintf(error, TK_QUERY_ERROR, "out of memory");
  if (e == NULL) return false;
  e->place = place;
  e->has_goroutine = ask->has_goroutine;
  e->goroutine = ask->goroutine;
  tb_diag_clear(&e->diag);
  tb_diag_clear(&e->after);
  to_stack_table_init(&e->stacks, &tk_mem, TK_QUERY_STACKS_MAX, NULL);
  to_allocfree_init(&e->types, &tk_mem);
  if (choose(e, ask) && (e->parts == 0 || begin_part(e, error))) {
    *out = e;
    return true;
  }
  tk_events_end(e);
  return false;
}

void tk_events_end(struct tk_events *e) {
  if (e == NULL) return;
  end_part(e);
  to_allocfree_fini(&e->types);
  to_stack_table_fini(&e->stacks);
  free(e->part);
  free(e);
}

static void set_generation(struct tk_events *e, const struct to_generation *gen) {
  e->gen = gen;
  if (gen == NULL || to_generation_number(gen) == e->gen_number) return;
  e->gen_number = to_generation_number(gen);
  e->has_clock = to_generation_clock(gen, &e->clock);
  to_stack_table_generation(&e->stacks);
}

int tk_events_next(struct tk_events *e, struct tk_event *out, char error[TK_QUERY_ERROR]) {
  const struct to_generation *gen;
  const struct to_event *event;
  tb_rc rc;

  if (e->parts == 0) return 0;
  while ((rc = to_pull_next(e->pull, &event, &gen)) == TB_END && e->next_part < e->parts)
    if (!begin_part(e, error)) return -1;
  if (rc == TB_END && e->after.rc != TB_OK) {
    e->diag = e->after;
    return fail(e, e->after.rc, error);
  }
  if (rc != TB_OK) return rc == TB_END ? 0 : fail(e, rc, error);
  set_generation(e, gen);
  if (event->type == TW_EV_SYNC && e->before > 0) {
    e->sync = *event;
    e->sync.args[0] += e->before;
    event = &e->sync;
  }
  *out = (struct tk_event){ .event = event, .gen = gen, .has_wall = gen != NULL && e->has_clock };
  if (out->has_wall) out->wall_ns = tk_wall_of(&e->clock, event->time);
  return 1;
}

const struct tb_diag *tk_events_fault(const struct tk_events *e) {
  return &e->diag;
}

tb_rc tk_events_stack(struct tk_events *e, uint64_t id, uint32_t *out_number,
                      const struct to_callstack **out) {
  *out_number = TO_STACK_EMPTY;
  *out = NULL;
  if (e->gen == NULL || id == 0) return TB_OK;
  TB_TRY(to_stack_table_index(&e->stacks, e->gen, id, out_number));
  *out = to_stack_table_stack(&e->stacks, *out_number);
  return TB_OK;
}

tb_rc tk_events_types(struct tk_events *e, const struct to_allocfree **out) {
  *out = &e->types;
  if (e->gen == NULL || e->types_gen == e->gen_number) return TB_OK;
  e->types_gen = e->gen_number;
  return to_allocfree_generation(&e->types, e->gen);
}
