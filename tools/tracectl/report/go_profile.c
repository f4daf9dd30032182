/* SPDX-License-Identifier: Apache-2.0 */
/* A goroutine's calls are kept in two sums: those that ended before it was seen running in its
 * present life, and those after. Whether the first count is known only at the end: they do if the
 * last life of the id never ran. */
#include "tools/tracectl/report/go_profile.h"

#include <string.h>

#include "pack/report_read.h"
#include "wire/spec.h"

typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__Table Table;
typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__Value Value;

enum { CHUNK_BYTES = 256 << 10, STACK_BITS = 24 };

struct sum {
  uint64_t count, ns;
};

struct entry {        /* one goroutine with one stack */
  struct entry *next; /* of the same goroutine */
  uint32_t stack;
  struct sum before, after;
};

struct goroutine {
  bool has_run;
  struct entry *entries;
};

struct call {
  int64_t g;
  to_ns begin;
  uint32_t stack;
  bool open;
};

void tk_go_profile_init(struct tk_go_profile *p, struct tb_mem *mem) {
  *p = (struct tk_go_profile){ 0 };
  tb_arena_init(&p->arena, mem, CHUNK_BYTES);
  to_stack_table_init(&p->stacks, mem, (1 << STACK_BITS) - 2);
  tb_map_init(&p->goroutines, mem, tb_seed());
  tb_map_init(&p->entries, mem, tb_seed());
  tb_map_init(&p->calls, mem, tb_seed());
}

void tk_go_profile_fini(struct tk_go_profile *p) {
  tb_arena_fini(&p->arena);
  to_stack_table_fini(&p->stacks);
  tb_map_fini(&p->goroutines);
  tb_map_fini(&p->entries);
  tb_map_fini(&p->calls);
}

/* The zeroed thing of size bytes that map has for key, made if it is not there. */
static tb_rc find_or_make(struct tk_go_profile *p, struct tb_map *map, uint64_t key, size_t bytes,
                          void **out) {
  uint64_t *place;

  TB_TRY(tb_map_put(map, key, &place, NULL));
  if (*place == 0) {
    void *block;
    TB_TRY(tb_arena_take(&p->arena, bytes, &block));
    memset(block, 0, bytes);
    *place = (uintptr_t)block;
  }
  *out = (void *)(uintptr_t)*place;
  return TB_OK;
}

static tb_rc find_goroutine(struct tk_go_profile *p, int64_t g, struct goroutine **out) {
  void *found;

  TB_TRY(find_or_make(p, &p->goroutines, (uint64_t)g, sizeof(**out), &found));
  *out = found;
  return TB_OK;
}

static tb_rc begin_call(struct tk_go_profile *p, const struct to_generation *gen, int64_t m,
                        int64_t g, to_ns time, uint64_t stack_id) {
  void *found;

  TB_TRY(find_or_make(p, &p->calls, (uint64_t)m, sizeof(struct call), &found));
  struct call *call = found;
  *call = (struct call){ .g = g, .begin = time, .open = true };
  return to_stack_table_index(&p->stacks, gen, stack_id, &call->stack);
}

static tb_rc end_call(struct tk_go_profile *p, int64_t m, to_ns time, bool runs_on) {
  const uint64_t *place = tb_map_find(&p->calls, (uint64_t)m);
  struct goroutine *goroutine;
  void *found;

  if (place == NULL) return TB_OK;
  struct call *call = (struct call *)(uintptr_t)*place;
  if (!call->open) return TB_OK;
  call->open = false;
  TB_TRY(find_goroutine(p, call->g, &goroutine));
  TB_TRY(find_or_make(p, &p->entries, (uint64_t)call->g << STACK_BITS | call->stack,
                      sizeof(struct entry), &found));
  struct entry *entry = found;
  if (entry->before.count + entry->after.count == 0) {
    entry->stack = call->stack;
    entry->next = goroutine->entries;
    goroutine->entries = entry;
  }
  struct sum *sum = goroutine->has_run ? &entry->after : &entry->before;
  sum->count++;
  sum->ns += (uint64_t)time - (uint64_t)call->begin;
  goroutine->has_run |= runs_on;
  return TB_OK;
}

/* The id begins another life. */
static tb_rc be_born(struct tk_go_profile *p, int64_t g) {
  struct goroutine *goroutine;

  TB_TRY(find_goroutine(p, g, &goroutine));
  goroutine->has_run = false;
  for (struct entry *e = goroutine->entries; e != NULL; e = e->next) {
    e->before.count += e->after.count;
    e->before.ns += e->after.ns;
    e->after = (struct sum){ 0 };
  }
  return TB_OK;
}

static tb_rc take_event(struct tk_go_profile *p, const struct to_generation *gen,
                        const struct to_event *ev) {
  struct goroutine *goroutine;
  const uint64_t *place;

  switch (ev->type) {
  case TW_EV_SYNC: to_stack_table_generation(&p->stacks); return TB_OK;
  case TW_EV_GO_SYSCALL_BEGIN:
    TB_TRY(find_goroutine(p, ev->g, &goroutine));
    goroutine->has_run = true; /* it does, up to here */
    return begin_call(p, gen, ev->m, ev->g, ev->time, ev->args[1]);
  case TW_EV_GO_SYSCALL_END: return end_call(p, ev->m, ev->time, true);
  case TW_EV_GO_SYSCALL_END_BLOCKED:
  case TW_EV_GO_DESTROY_SYSCALL: return end_call(p, ev->m, ev->time, false);
  case TW_EV_GO_CREATE_SYSCALL:
    TB_TRY(be_born(p, (int64_t)ev->args[0]));
    return begin_call(p, gen, ev->m, (int64_t)ev->args[0], ev->time, 0);
  case TW_EV_GO_STATUS:
  case TW_EV_GO_STATUS_STACK:
    if ((uint32_t)ev->args[2] != TW_GO_SYSCALL || ev->args[2] >> 32 != TO_GO_UNDETERMINED)
      return TB_OK;
    return begin_call(p, gen, (int64_t)ev->args[1], (int64_t)ev->args[0], ev->time,
                      ev->type == TW_EV_GO_STATUS_STACK ? ev->args[3] : 0);
  case TW_EV_GO_START:
    place = tb_map_find(&p->goroutines, ev->args[0]);
    if (place != NULL) ((struct goroutine *)(uintptr_t)*place)->has_run = true;
    return TB_OK;
  default: return TB_OK;
  }
}

tb_rc tk_go_profile_events(struct tk_go_profile *p, const struct to_generation *gen,
                           const struct to_event *events, size_t n) {
  for (size_t i = 0; i < n && gen != NULL; i++) TB_TRY(take_event(p, gen, &events[i]));
  return TB_OK;
}

/* ---- the report ---- */

/* What `go tool trace -pprof=KIND` shows of a kind of report. */
static const struct {
  const char *kind, *table, *measure;
} go_profiles[] = {
  { "syscall", "by_stack", "calls" },
};

bool tk_go_profile_find(const char *kind, const char **out_table, const char **out_measure) {
  for (size_t i = 0; i < sizeof(go_profiles) / sizeof(*go_profiles); i++)
    if (strcmp(go_profiles[i].kind, kind) == 0) {
      *out_table = go_profiles[i].table;
      *out_measure = go_profiles[i].measure;
      return true;
    }
  return false;
}

static bool same_stack(const struct to_callstack *a, const Report *r, const Value *b) {
  if (a->len != tp_stack_length(r, b)) return false;
  for (size_t i = 0; i < a->len; i++) {
    const Tracecollect__V1__Frame *frame = tp_stack_frame(r, b, i);
    if (frame == NULL || a->frames[i]->pc != frame->pc || a->frames[i]->line != frame->line)
      return false;
  }
  return true;
}

static void sum_by_stack(const struct tk_go_profile *p, struct sum *by_stack) {
  uint64_t key, value;

  for (size_t i = 0; tb_map_next(&p->goroutines, &i, &key, &value);) {
    const struct goroutine *g = (const struct goroutine *)(uintptr_t)value;
    for (const struct entry *e = g->entries; e != NULL; e = e->next) {
      by_stack[e->stack].count += e->after.count + (g->has_run ? 0 : e->before.count);
      by_stack[e->stack].ns += e->after.ns + (g->has_run ? 0 : e->before.ns);
    }
  }
}

/* The table's index of a row's stack. Both found the stacks in much the same order, so the search
 * goes on from where the last one ended. */
static size_t find_stack(const struct tk_go_profile *p, const Report *r, const Value *row,
                         size_t *hint) {
  for (size_t tried = 0; tried < p->stacks.count; tried++, ++*hint) {
    if (*hint >= p->stacks.count) *hint = 0;
    const struct to_callstack *stack = to_stack_table_stack(&p->stacks, (uint32_t)*hint);
    if (stack != NULL && same_stack(stack, r, row)) return *hint;
  }
  return TO_STACK_OTHER;
}

/* A copy of the row with these figures in the place of its measure. */
static tb_rc copy_row(struct tb_arena *arena, const Row *row, size_t measure, const struct sum *sum,
                      Row **out) {
  Tracecollect__V1__Distribution *d;
  Value *value;

  TB_TRY(tb_arena_copy(arena, row, sizeof(*row), out));
  TB_TRY(tb_arena_copy(arena, row->values, row->n_values * sizeof(*row->values), &(*out)->values));
  TB_TRY(tb_arena_copy(arena, row->values[measure], sizeof(*value), &value));
  TB_TRY(tb_arena_copy(arena, value->distribution, sizeof(*d), &d));
  d->count = sum->count;
  d->total_ns = sum->ns;
  value->distribution = d;
  (*out)->values[measure] = value;
  return TB_OK;
}

static tb_rc copy_rows(const struct tk_go_profile *p, const struct tp_table *from, const char *name,
                       struct tb_arena *arena, Table *table) {
  size_t measure = tp_table_column(from, name), stack = tp_table_column(from, "stack"), hint = 0;
  struct sum *by_stack;

  TB_TRY(tb_arena_take(arena, (from->table->n_rows + 1) * sizeof(*table->rows), &table->rows));
  TB_TRY(tb_arena_take(arena, (p->stacks.count + 2) * sizeof(*by_stack), &by_stack));
  memset(by_stack, 0, (p->stacks.count + 2) * sizeof(*by_stack));
  sum_by_stack(p, by_stack);
  table->n_rows = 0;
  for (size_t i = 0; i < from->table->n_rows; i++) {
    const Row *row = from->table->rows[i];
    if (tp_row_distribution(row, measure) == NULL) continue;
    const struct sum *sum = &by_stack[find_stack(p, from->report, tp_row_value(row, stack), &hint)];
    if (sum->count == 0) continue;
    TB_TRY(copy_row(arena, row, measure, sum, &table->rows[table->n_rows++]));
  }
  return TB_OK;
}

tb_rc tk_go_profile_report(const struct tk_go_profile *p,
                           const Tracecollect__V1__StreamReport *report, struct tb_arena *arena,
                           Tracecollect__V1__StreamReport **out) {
  const char *name, *measure;
  struct tp_table from;
  Report *r;
  size_t at = 0;

  TB_TRY(tb_arena_copy(arena, report, sizeof(*report), out));
  if (!tk_go_profile_find(report->kind, &name, &measure) ||
      !tp_report_table(report->report, name, &from))
    return TB_OK;
  TB_TRY(tb_arena_copy(arena, report->report, sizeof(*r), &r));
  TB_TRY(tb_arena_copy(arena, r->tables, r->n_tables * sizeof(*r->tables), &r->tables));
  while (r->tables[at] != from.table) at++;
  TB_TRY(tb_arena_copy(arena, from.table, sizeof(*from.table), &r->tables[at]));
  (*out)->report = r;
  return copy_rows(p, &from, measure, arena, r->tables[at]);
}
