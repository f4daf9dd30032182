/* SPDX-License-Identifier: Apache-2.0 */
/* The table `generations`: a row for each generation that was read, and one for the generation at which a broken
 * trace ends. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/tracectl/query/scan.h"
#include "tools/tracectl/trace_file/index.h"

struct tk_generation_rows {
  struct tk_index index;
  size_t at; /* first index row that the next row may belong to */
  uint64_t gen;
  to_ns from, until;
  bool has_times, has_wall, is_broken;
  uint64_t wall_ns, events;
  char reason[TK_QUERY_ERROR];
  bool has_next, has_ended; /* c->event is the next one's first event; no more events */
  struct tb_diag fault;     /* reported by the next row */
};

static struct tk_generation_rows *row(const struct tk_scan *c) {
  return c->generations;
}

static void n_gen(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, (int64_t)row(c)->gen);
}

static void n_from(struct tk_scan *c, struct tk_value *out) {
  if (row(c)->has_times) tk__number(out, row(c)->from);
}

static void n_until(struct tk_scan *c, struct tk_value *out) {
  if (row(c)->has_times) tk__number(out, row(c)->until);
}

static void n_wall(struct tk_scan *c, struct tk_value *out) {
  if (row(c)->has_wall) tk__number(out, (int64_t)row(c)->wall_ns);
}

/* The index has the generations in the same order. */
static void n_bytes(struct tk_scan *c, struct tk_value *out) {
  struct tk_generation_rows *r = row(c);

  while (r->at < r->index.n && r->index.row[r->at].gen < r->gen) r->at++;
  if (r->at == r->index.n || r->index.row[r->at].gen != r->gen) return;
  tk__number(out, (int64_t)r->index.row[r->at].bytes);
}

static void n_events(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, (int64_t)row(c)->events);
}

static void n_verdict(struct tk_scan *c, struct tk_value *out) {
  tk__name(out, row(c)->is_broken ? "broken" : "ok");
}

static void n_reason(struct tk_scan *c, struct tk_value *out) {
  tk__words(out, row(c)->reason);
}

static void begin_row(struct tk_generation_rows *r, uint64_t gen) {
  r->gen = gen;
  r->events = 0;
  r->has_times = r->has_wall = r->is_broken = false;
  r->reason[0] = 0;
}

static void set_broken(struct tk_generation_rows *r, const struct tb_diag *fault) {
  r->is_broken = true;
  tb_diag_format(fault, r->reason, sizeof r->reason);
}

static void count_event(struct tk_generation_rows *r, const struct tk_event *at) {
  if (r->events++ == 0) {
    r->from = to_generation_start(at->gen);
    r->has_times = true;
    r->has_wall = at->has_wall;
    r->wall_ns = at->wall_ns - (uint64_t)(at->event->time - r->from);
  }
  r->until = at->event->time;
}

/* At the end or at a fault: the row of this generation, or of one without events. */
static int end_row(struct tk_scan *c, int got) {
  struct tk_generation_rows *r = row(c);

  r->has_ended = true;
  if (got == 0) return r->gen != 0;
  const struct tb_diag *fault = tk_events_fault(c->events);
  if (fault->gen == TB_NO_GEN && r->gen == 0) return -1;
  if (fault->gen == TB_NO_GEN || fault->gen == r->gen || r->gen == 0) {
    if (r->gen == 0) r->gen = fault->gen;
    set_broken(r, fault);
  } else {
    r->fault = *fault;
  }
  return 1;
}

static int generations_next(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  struct tk_generation_rows *r = row(c);
  int got = 1;

  if (r->has_ended && r->fault.rc == TB_OK) return 0;
  if (r->has_ended) {
    begin_row(r, r->fault.gen);
    set_broken(r, &r->fault);
    tb_diag_clear(&r->fault);
    return 1;
  }
  begin_row(r, r->has_next ? to_generation_number(c->event.gen) : 0);
  if (r->has_next) count_event(r, &c->event);
  r->has_next = false;
  while ((got = tk_events_next(c->events, &c->event, error)) == 1) {
    if (c->event.gen == NULL) continue; /* the Sync at the end */
    uint64_t gen = to_generation_number(c->event.gen);
    r->has_next = r->gen != 0 && gen != r->gen;
    if (r->has_next) return 1;
    r->gen = gen;
    count_event(r, &c->event);
  }
  return end_row(c, got);
}

static int generations_begin(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  struct tk_generation_rows *r = calloc(1, sizeof *r);

  if (r == NULL) {
    snprintf(error, TK_QUERY_ERROR, "out of memory");
    return -1;
  }
  tb_diag_clear(&r->fault);
  c->generations = r;
  error[0] = 0; /* the index reports the file's fault */
  if (!tk_index_find(c->trace->place.verb, c->trace->place.path, false, &r->index)) return -1;
  if (!tk_events_begin(&c->trace->place, &c->wants.events, &c->events, error)) return -1;
  return generations_next(c, error);
}

static void generations_end(struct tk_scan *c) {
  tk_events_end(c->events);
  c->events = NULL;
  if (c->generations != NULL) tk_index_fini(&c->generations->index);
  free(c->generations);
  c->generations = NULL;
}

static const struct tk_table_ops ops = { generations_begin, generations_next, generations_end };

const struct tk_query_table tk__generation_tables[] = {
  { .name = "generations",
    .ops = &ops,
    .column = { { "stream", tk__stream },
                { "gen", n_gen, TK_PUSH_GEN },
                { "from_ns", n_from },
                { "until_ns", n_until },
                { "wall_ns", n_wall },
                { "bytes", n_bytes },
                { "events", n_events },
                { "verdict", n_verdict },
                { "reason", n_reason } } },
  { 0 },
};
