/* SPDX-License-Identifier: Apache-2.0 */
/* Each goroutine and stack has three sums of waits: those that ended before the goroutine's present life was seen running,
 * those after, and those after it waited "forever", which Go takes for its end. Which of them count is known only at the
 * end. */
#include "tools/tracectl/profiles/go_profile.h"

#include <string.h>

#include "base/hash.h"
#include "pack/text.h"

enum { CHUNK_BYTES = 256 << 10, STACK_BITS = 24 };

/* ---- kinds ---- */

static bool has(struct to_string text, const char *word) {
  return memmem(text.data, text.len, word, strlen(word)) != NULL;
}

static bool is_network(struct to_string reason) {
  return reason.len == strlen("network") && has(reason, "network");
}

static bool is_sync(struct to_string reason) {
  return has(reason, "chan") || has(reason, "sync") || has(reason, "select");
}

static const struct tk_go_kind kinds[] = {
  { "net", NULL, NULL, TO_GO_WAITING, is_network },
  { "sync", NULL, NULL, TO_GO_WAITING, is_sync },
  { "syscall", "by_stack", "calls", TO_GO_SYSCALL, NULL },
  { "sched", NULL, NULL, TO_GO_RUNNABLE, NULL },
};

const struct tk_go_kind *tk_go_kind_find(const char *name) {
  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  return NULL;
}

/* ---- events ---- */

enum phase { BEFORE_IT_RAN, SINCE_IT_RAN, PAST_ITS_END, PHASES };

struct sum {
  uint64_t count, ns;
  uint64_t last; /* number of the last wait in the trace */
};

struct entry {        /* one goroutine with one stack */
  struct entry *next; /* of the same goroutine */
  uint32_t stack;
  bool is_listed;
  struct sum sum[PHASES];
};

struct goroutine {
  struct entry *entries;
  to_ns since; /* begin of the kind's state, if it is in that state */
  uint32_t stack;
  bool waits;
  uint8_t phase;
  bool has_run;
};

void tk_go_profile_init(struct tk_go_profile *p, const struct tk_go_kind *kind,
                        struct tb_mem *mem) {
  *p = (struct tk_go_profile){ .kind = kind };
  tb_arena_init(&p->arena, mem, CHUNK_BYTES);
  to_stack_table_init(&p->stacks, mem, (1 << STACK_BITS) - 2, NULL);
  tb_map_init(&p->goroutines, mem, tb_seed());
  tb_map_init(&p->entries, mem, tb_seed());
}

void tk_go_profile_fini(struct tk_go_profile *p) {
  tb_arena_fini(&p->arena);
  to_stack_table_fini(&p->stacks);
  tb_map_fini(&p->goroutines);
  tb_map_fini(&p->entries);
}

/* Finds or creates a zeroed block of size bytes for key. */
static tb_rc find_or_make(struct tk_go_profile *p, struct tb_map *map, uint64_t key, size_t bytes,
                          void **out) {
  uint64_t *place;

  TB_TRY(tb_map_put(map, key, &place, NULL));
  if (*place == 0) {
    void *block;
    TB_TRY(tb_arena_alloc(&p->arena, bytes, &block));
    memset(block, 0, bytes);
    *place = (uintptr_t)block;
  }
  *out = (void *)(uintptr_t)*place;
  return TB_OK;
}

static tb_rc find_entry(struct tk_go_profile *p, uint64_t id, struct goroutine *g,
                        struct entry **out) {
  void *found;

  TB_TRY(find_or_make(p, &p->entries, id << STACK_BITS | g->stack, sizeof(**out), &found));
  *out = found;
  if ((*out)->is_listed) return TB_OK;
  **out = (struct entry){ .next = g->entries, .stack = g->stack, .is_listed = true };
  g->entries = *out;
  return TB_OK;
}

static bool is_of_kind(const struct tk_go_kind *kind, const struct to_generation *gen,
                       const struct to_transition *tr) {
  struct to_string reason = { "", 0 };

  if (tr->to != kind->state) return false;
  if (kind->is == NULL) return true;
  (void)to_generation_string(gen, tr->reason, &reason);
  return kind->is(reason);
}

static void join(struct sum *into, const struct sum *from) {
  into->count += from->count;
  into->ns += from->ns;
  if (from->last > into->last) into->last = from->last;
}

/* Begins or ends a wait. */
static tb_rc follow(struct tk_go_profile *p, const struct to_generation *gen,
                    const struct to_event *ev, const struct to_transition *tr,
                    struct goroutine *g) {
  struct entry *entry;

  if (!g->waits) {
    if (!is_of_kind(p->kind, gen, tr)) return TB_OK;
    uint64_t stack = to_event_stack(ev);
    g->waits = true;
    g->since = ev->time;
    return to_stack_table_index(&p->stacks, gen, stack == TO_NO_STACK ? 0 : stack, &g->stack);
  }
  if (tr->to == p->kind->state) return TB_OK; /* a status only restates the state */
  g->waits = false;
  if (ev->time == g->since) return TB_OK;
  TB_TRY(find_entry(p, (uint64_t)tr->id, g, &entry));
  uint64_t ns = (uint64_t)ev->time - (uint64_t)g->since;
  join(&entry->sum[g->phase], &(struct sum){ .count = 1, .ns = ns, .last = ++p->waits });
  return TB_OK;
}

static void move_sums(struct goroutine *g, enum phase from, enum phase to) {
  for (struct entry *e = g->entries; e != NULL; e = e->next) {
    join(&e->sum[to], &e->sum[from]);
    e->sum[from] = (struct sum){ 0 };
  }
}

static bool is_forever(const struct to_generation *gen, const struct to_transition *tr) {
  struct to_string reason = { "", 0 };

  return tr->to == TO_GO_WAITING && to_generation_string(gen, tr->reason, &reason) &&
         reason.len == strlen("forever") && has(reason, "forever");
}

/* Notes the goroutine's begin, first run and end as Go sees them. */
static void live(const struct to_generation *gen, const struct to_transition *tr,
                 struct goroutine *g) {
  if (tr->from == tr->to) return;
  if (tr->from == TO_GO_UNDETERMINED || tr->from == TO_GO_NOT_EXIST) {
    move_sums(g, SINCE_IT_RAN, BEFORE_IT_RAN);
    move_sums(g, PAST_ITS_END, BEFORE_IT_RAN);
    g->has_run = false;
    g->phase = BEFORE_IT_RAN;
  }
  if (tr->to == TO_GO_RUNNING && !g->has_run) {
    g->has_run = true;
    if (g->phase == BEFORE_IT_RAN) g->phase = SINCE_IT_RAN;
  }
  if (tr->to != TO_GO_NOT_EXIST && !is_forever(gen, tr)) return;
  move_sums(g, PAST_ITS_END, g->has_run ? SINCE_IT_RAN : BEFORE_IT_RAN);
  g->phase = PAST_ITS_END;
}

static tb_rc take_event(struct tk_go_profile *p, const struct to_generation *gen,
                        const struct to_event *ev) {
  struct to_transition tr;
  void *found;

  if (ev->type == TW_EV_SYNC) to_stack_table_generation(&p->stacks);
  if (to_event_kind(ev) != TO_KIND_TRANSITION) return TB_OK;
  to_event_transition(ev, &tr);
  if (tr.resource != TO_RESOURCE_GOROUTINE) return TB_OK;
  TB_TRY(find_or_make(p, &p->goroutines, (uint64_t)tr.id, sizeof(struct goroutine), &found));
  TB_TRY(follow(p, gen, ev, &tr, found));
  live(gen, &tr, found);
  return TB_OK;
}

tb_rc tk_go_profile_events(struct tk_go_profile *p, const struct to_generation *gen,
                           const struct to_event *events, size_t n) {
  for (size_t i = 0; i < n && gen != NULL; i++) TB_TRY(take_event(p, gen, &events[i]));
  return TB_OK;
}

/* ---- the report ---- */

enum { STACK, DELAY, COLUMNS };
static const char table_name[] = "go_profile", measure_name[] = "delay";

static char *lend(const char *text) {
  return (char *)(uintptr_t)text;
}

static tb_rc take_schema(struct tb_arena *arena, Tracecollect__V1__TableSchema **out) {
  Tracecollect__V1__FieldSchema *fields;

  TP_TAKE(arena, Tracecollect__V1__TableSchema, 1, *out);
  TP_TAKE(arena, Tracecollect__V1__FieldSchema, COLUMNS, fields);
  tracecollect__v1__table_schema__init(*out);
  (*out)->name = lend(table_name);
  (*out)->keys = 1;
  TP_TAKE(arena, Tracecollect__V1__FieldSchema *, COLUMNS, (*out)->columns);
  for (; (*out)->n_columns < COLUMNS; (*out)->n_columns++) {
    (*out)->columns[(*out)->n_columns] = &fields[(*out)->n_columns];
    tracecollect__v1__field_schema__init(&fields[(*out)->n_columns]);
  }
  fields[STACK].name = lend("stack");
  fields[STACK].type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK;
  fields[DELAY].name = lend(measure_name);
  fields[DELAY].type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
  return TB_OK;
}

tb_rc tk_go_profile_ask(struct tb_arena *arena, struct tk_pprof_ask *out) {
  Tracecollect__V1__TableSchema *schema;

  TB_TRY(take_schema(arena, &schema));
  *out = (struct tk_pprof_ask){ .table = schema, .go_measure = measure_name };
  return TB_OK;
}

static tb_rc sum_by_stack(const struct tk_go_profile *p, struct tb_arena *arena, struct sum **out) {
  struct sum *by_stack;
  uint64_t id, value;

  TP_TAKE(arena, struct sum, p->stacks.count, by_stack);
  memset(by_stack, 0, p->stacks.count * sizeof(*by_stack));
  for (size_t i = 0; tb_map_next(&p->goroutines, &i, &id, &value);) {
    const struct goroutine *g = (const struct goroutine *)(uintptr_t)value;
    for (const struct entry *e = g->entries; e != NULL; e = e->next) {
      join(&by_stack[e->stack], &e->sum[SINCE_IT_RAN]);
      if (!g->has_run) join(&by_stack[e->stack], &e->sum[BEFORE_IT_RAN]);
    }
  }
  *out = by_stack;
  return TB_OK;
}

static uint64_t counter(const struct to_callstack *stack, size_t frame) {
  return frame < stack->len ? stack->frames[frame]->pc : 0;
}

static bool same_counters(const struct to_callstack *a, const struct to_callstack *b) {
  for (size_t i = 0; i < a->len || i < b->len; i++)
    if (counter(a, i) != counter(b, i)) return false;
  return true;
}

static uint64_t hash_counters(const struct to_callstack *stack) {
  uint64_t hash = TB_HASH_START;

  for (size_t i = 0; i < stack->len; i++) {
    uint64_t pc = counter(stack, i);
    if (pc != 0) hash = tb_hash(hash, &pc, sizeof(pc)); /* frames without a counter do not count */
  }
  return hash;
}

/* Go compares stacks by their program counters only, ignores frames without one, and shows the last stack. Two such stacks
 * are joined here: the earlier one's sum is added to the later one's. */
static tb_rc join_same(const struct tk_go_profile *p, struct tb_map *by_counters,
                       struct sum *by_stack) {
  for (uint32_t i = 0; i < p->stacks.count; i++) {
    const struct to_callstack *stack = to_stack_table_stack(&p->stacks, i), *other = NULL;
    uint64_t *place;

    if (by_stack[i].count == 0 || stack == NULL) continue;
    for (uint64_t key = hash_counters(stack);; key++) {
      TB_TRY(tb_map_put(by_counters, key, &place, NULL));
      if (*place == 0) break;
      other = to_stack_table_stack(&p->stacks, (uint32_t)*place - 1);
      if (same_counters(stack, other)) break;
    }
    uint32_t known = *place == 0 ? i : (uint32_t)*place - 1;
    uint32_t shown = by_stack[known].last > by_stack[i].last ? known : i;
    uint32_t hidden = shown == i ? known : i;
    if (hidden != shown) {
      join(&by_stack[shown], &by_stack[hidden]);
      by_stack[hidden] = (struct sum){ 0 };
    }
    *place = shown + 1;
  }
  return TB_OK;
}

struct writer {
  struct tb_arena *arena;
  struct tb_map by_counters; /* hash of a stack's counters: its number + 1 */
  struct tb_map frames;      /* address -> index in the report + 1 */
  size_t frames_room;
  Tracecollect__V1__Report *report;
};

static tb_rc add_frame(struct writer *w, const struct to_frame *frame) {
  Tracecollect__V1__Report *r = w->report;
  Tracecollect__V1__Frame *message;

  if (r->n_frames == w->frames_room) {
    Tracecollect__V1__Frame **more;
    w->frames_room = w->frames_room == 0 ? 256 : 2 * w->frames_room;
    TP_TAKE(w->arena, Tracecollect__V1__Frame *, w->frames_room, more);
    if (r->n_frames > 0) memcpy(more, r->frames, r->n_frames * sizeof(*more));
    r->frames = more;
  }
  TP_TAKE(w->arena, Tracecollect__V1__Frame, 1, message);
  tracecollect__v1__frame__init(message);
  TB_TRY(tp_copy_text(w->arena, frame->function, &message->function));
  TB_TRY(tp_copy_text(w->arena, frame->file, &message->file));
  message->line = frame->line;
  message->pc = frame->pc;
  r->frames[r->n_frames++] = message;
  return TB_OK;
}

static tb_rc add_stack(struct writer *w, const struct to_callstack *stack) {
  Tracecollect__V1__Stack *message;
  uint64_t *place;

  TP_TAKE(w->arena, Tracecollect__V1__Stack, 1, message);
  tracecollect__v1__stack__init(message);
  TP_TAKE(w->arena, uint32_t, stack->len, message->frames);
  for (; message->n_frames < stack->len; message->n_frames++) {
    const struct to_frame *frame = stack->frames[message->n_frames];
    TB_TRY(tb_map_put(&w->frames, (uintptr_t)frame, &place, NULL));
    if (*place == 0) {
      TB_TRY(add_frame(w, frame));
      *place = w->report->n_frames;
    }
    message->frames[message->n_frames] = (uint32_t)*place - 1;
  }
  w->report->stacks[w->report->n_stacks++] = message;
  return TB_OK;
}

/* Adds a row for the last added stack. */
static tb_rc add_row(struct writer *w, const struct sum *sum) {
  Tracecollect__V1__Table *table = w->report->tables[0];
  Tracecollect__V1__Distribution *d;
  Tracecollect__V1__Value *values;
  Tracecollect__V1__Row *row;

  TP_TAKE(w->arena, Tracecollect__V1__Row, 1, row);
  TP_TAKE(w->arena, Tracecollect__V1__Value, COLUMNS, values);
  TP_TAKE(w->arena, Tracecollect__V1__Distribution, 1, d);
  tracecollect__v1__row__init(row);
  TP_TAKE(w->arena, Tracecollect__V1__Value *, COLUMNS, row->values);
  for (; row->n_values < COLUMNS; row->n_values++) {
    row->values[row->n_values] = &values[row->n_values];
    tracecollect__v1__value__init(&values[row->n_values]);
  }
  tracecollect__v1__distribution__init(d);
  d->count = sum->count;
  d->total_ns = sum->ns;
  values[STACK].is_case = TRACECOLLECT__V1__VALUE__IS_STACK;
  values[STACK].stack = (uint32_t)w->report->n_stacks - 1;
  values[DELAY].is_case = TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION;
  values[DELAY].distribution = d;
  table->rows[table->n_rows++] = row;
  return TB_OK;
}

static tb_rc begin_report(struct writer *w, size_t rows) {
  Tracecollect__V1__ReportSchema *schema;
  Tracecollect__V1__Table *table;

  TP_TAKE(w->arena, Tracecollect__V1__Report, 1, w->report);
  tracecollect__v1__report__init(w->report);
  TP_TAKE(w->arena, Tracecollect__V1__ReportSchema, 1, schema);
  tracecollect__v1__report_schema__init(schema);
  TP_TAKE(w->arena, Tracecollect__V1__TableSchema *, 1, schema->tables);
  TB_TRY(take_schema(w->arena, &schema->tables[0]));
  schema->n_tables = 1;
  w->report->schema = schema;
  TP_TAKE(w->arena, Tracecollect__V1__Table, 1, table);
  tracecollect__v1__table__init(table);
  TP_TAKE(w->arena, Tracecollect__V1__Row *, rows, table->rows);
  TP_TAKE(w->arena, Tracecollect__V1__Table *, 1, w->report->tables);
  w->report->tables[0] = table;
  w->report->n_tables = 1;
  TP_TAKE(w->arena, Tracecollect__V1__Stack *, rows, w->report->stacks);
  return TB_OK;
}

static tb_rc fill_report(const struct tk_go_profile *p, struct writer *w) {
  struct sum *by_stack;

  TB_TRY(sum_by_stack(p, w->arena, &by_stack));
  TB_TRY(join_same(p, &w->by_counters, by_stack));
  TB_TRY(begin_report(w, p->stacks.count));
  for (uint32_t i = 0; i < p->stacks.count; i++) {
    const struct to_callstack *stack = to_stack_table_stack(&p->stacks, i);
    if (by_stack[i].count == 0 || stack == NULL) continue;
    TB_TRY(add_stack(w, stack));
    TB_TRY(add_row(w, &by_stack[i]));
  }
  return TB_OK;
}

tb_rc tk_go_profile_report(const struct tk_go_profile *p, struct tb_arena *arena,
                           Tracecollect__V1__StreamReport **out) {
  struct writer w = { .arena = arena };

  tb_map_init(&w.frames, arena->mem, tb_seed());
  tb_map_init(&w.by_counters, arena->mem, tb_seed());
  tb_rc rc = fill_report(p, &w);
  tb_map_fini(&w.by_counters);
  tb_map_fini(&w.frames);
  if (rc != TB_OK) return rc;
  TP_TAKE(arena, Tracecollect__V1__StreamReport, 1, *out);
  tracecollect__v1__stream_report__init(*out);
  (*out)->report = w.report;
  return TB_OK;
}
