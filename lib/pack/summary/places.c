/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about places of the program: system calls, locks, other waits, CPU time. Rows of one place are added up: reports have a row
 * for each stack. */
#include <stdio.h>
#include <string.h>

#include "pack/summary/private.h"

enum { PLACES = 64, REASON_BYTES = 32, CALLS_LEAST = 10, PILE_LEAST = 50 };
enum { LOCK_FRAMES = 8 }; /* those of the runtime are the innermost */
static const uint64_t ms = 1000000;
static const char by_name[] = "lock by name"; /* a reason */

typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__Row Row;

struct place {
  char at[TP__PLACE], other[TP__PLACE]; /* other: whoever ended the longest waits */
  char of_program[TP__PLACE];           /* of a lock by name: where most of the time was waited */
  char reason[REASON_BYTES];
  uint64_t count, total_ns, max_ns, most_of_other_ns;
};

struct places {
  struct place *place;
  size_t n;
};

static tb_rc places_new(struct tp_summary *summary, struct places *out) {
  *out = (struct places){ 0 };
  return tb_arena_alloc(summary->arena, PLACES * sizeof *out->place, &out->place);
}

/* Returns NULL if there are too many: rows are sorted, so what comes then is short. */
static struct place *find_place(struct places *all, const char *at, const char *reason) {
  struct place *p;

  for (size_t i = 0; i < all->n; i++)
    if (strcmp(all->place[i].at, at) == 0 && strcmp(all->place[i].reason, reason) == 0)
      return &all->place[i];
  if (all->n == PLACES) return NULL;
  p = &all->place[all->n++];
  *p = (struct place){ .count = 0 };
  snprintf(p->at, sizeof p->at, "%s", at);
  snprintf(p->reason, sizeof p->reason, "%.*s", REASON_BYTES - 1, reason);
  return p;
}

static void add(struct place *p, const Tracecollect__V1__Distribution *d) {
  p->count += d->count;
  p->total_ns += d->total_ns;
  if (d->max_ns > p->max_ns) p->max_ns = d->max_ns;
}

static const struct place *with_most(const struct places *all) {
  const struct place *most = NULL;

  for (size_t i = 0; i < all->n; i++)
    if (most == NULL || all->place[i].total_ns > most->total_ns) most = &all->place[i];
  return most;
}

static const struct place *with_longest(const struct places *all) {
  const struct place *most = NULL;

  for (size_t i = 0; i < all->n; i++)
    if (most == NULL || all->place[i].max_ns > most->max_ns) most = &all->place[i];
  return most;
}

/* ---- system calls ---- */

/* The oldest call that is open; idle ones are in another table. */
static tb_rc say_open_call(struct tp_summary *summary, const struct tp_summary_of *of) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_SYSCALL);
  struct tp__draft draft = {
    .kind = "call", .report = "syscall", .more = " --table blocked_now", .weight = 650
  };
  char place[TP__PLACE], age[TP__WORDS];
  struct tp_table table;

  if (!tp_report_table(r, "blocked_now", &table)) return TB_OK;
  size_t stack = tp_table_column(&table, "stack"), age_at = tp_table_column(&table, "age_ns");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Row *row = table.table->rows[i];
    uint64_t ns = (uint64_t)tp_row_number(row, age_at);
    if (ns < 1000 * ms || !tp__place_words(r, tp_row_value(row, stack), place)) continue;
    draft.place = place;
    return tp__say(summary, of, &draft, "A system call %s %s has not returned for %s",
                   tp__at(place), place, tp__ns_words(ns, age));
  }
  return TB_OK;
}

static tb_rc collect_calls(struct tp_summary *summary, const struct tp_summary_of *of,
                           struct places *out) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_SYSCALL);
  char place[TP__PLACE];
  struct tp_table table;

  *out = (struct places){ 0 };
  if (!tp_report_table(r, "by_stack", &table)) return TB_OK;
  TB_TRY(places_new(summary, out));
  size_t stack = tp_table_column(&table, "stack"), calls = tp_table_column(&table, "calls");
  size_t idle = tp_table_column(&table, "idle");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Row *row = table.table->rows[i];
    const Tracecollect__V1__Distribution *d = tp_row_distribution(row, calls);
    if (row->other || d == NULL || tp_row_number(row, idle) != 0) continue;
    if (!tp__place_words(r, tp_row_value(row, stack), place)) continue;
    struct place *p = find_place(out, place, "");
    if (p != NULL) add(p, d);
  }
  return TB_OK;
}

tb_rc tp__longest_call(struct tp_summary *summary, const struct tp_summary_of *of,
                       char out_place[TP__PLACE], uint64_t *out_ns) {
  struct places all;

  out_place[0] = '\0';
  *out_ns = 0;
  TB_TRY(collect_calls(summary, of, &all));
  const struct place *p = with_longest(&all);
  if (p == NULL) return TB_OK;
  memcpy(out_place, p->at, sizeof p->at);
  *out_ns = p->max_ns;
  return TB_OK;
}

/* One call that takes all of the time may be a reader that has nothing to read. */
static bool is_reader(const struct place *p, uint64_t time_ns) {
  return p->count == 1 && p->max_ns >= time_ns / 10 * 9;
}

static tb_rc say_calls(struct tp_summary *summary, const struct tp_summary_of *of) {
  struct tp__draft draft = { .kind = "call", .report = "syscall", .more = " --table by_stack" };
  char max[TP__WORDS], total[TP__WORDS], count[TP__WORDS];
  struct places all;

  TB_TRY(collect_calls(summary, of, &all));
  const struct place *p = with_longest(&all);
  if (p == NULL || p->max_ns < ms) return TB_OK;
  bool is_long = p->max_ns >= 100 * ms && !is_reader(p, tp__time_of(of, TO_ANALYSIS_SYSCALL));
  draft.place = p->at;
  draft.weight = is_long ? 450 : p->max_ns >= 10 * ms ? 130 : 8;
  tp__ns_words(p->max_ns, max);
  const char *at = tp__at(p->at);
  if (p->count == 1)
    return tp__say(summary, of, &draft, "A system call %s %s took %s", at, p->at, max);
  return tp__say(summary, of, &draft,
                 "System calls %s %s: the longest took %s, %s calls together %s", at, p->at, max,
                 tp__count_words(p->count, count), tp__ns_words(p->total_ns, total));
}

/* ---- waits ---- */

/* Is it a wait for a lock? A worker that waits for a message has nothing to do. */
static bool is_of_lock(const Report *r, const Row *row, size_t stack) {
  static const char *const locks[] = { "sync.(*Mutex)", "sync.(*RWMutex)", "internal/sync.(*Mutex)",
                                       "pthread_mutex_", "pthread_rwlock_" };

  for (size_t f = 0; f < LOCK_FRAMES; f++) {
    const Tracecollect__V1__Frame *frame = tp_stack_frame(r, tp_row_value(row, stack), f);
    for (size_t i = 0; frame != NULL && i < sizeof locks / sizeof *locks; i++)
      if (strncmp(frame->function, locks[i], strlen(locks[i])) == 0) return true;
  }
  return false;
}

/* A lock that the trace names is told by its name. */
static void take_pair(const Report *r, const struct tp_table *table, const Row *row,
                      struct places *all) {
  const Tracecollect__V1__Distribution *d =
      tp_row_distribution(row, tp_table_column(table, "waits"));
  size_t stack = tp_table_column(table, "stack");
  char place[TP__PLACE];

  if (row->other || d == NULL || !is_of_lock(r, row, stack)) return;
  if (tp_row_text(row, tp_table_column(table, "object"))[0] != '\0') return;
  if (!tp__place_words(r, tp_row_value(row, stack), place)) return;
  struct place *p = find_place(all, place, "lock");
  if (p == NULL) return;
  add(p, d);
  if (d->total_ns < p->most_of_other_ns) return;
  p->most_of_other_ns = d->total_ns;
  tp__place_words(r, tp_row_value(row, tp_table_column(table, "waker_stack")), p->other);
  if (tp__is_call(p->other)) p->other[0] = '\0';
}

/* all: by lock. holders: by lock and holder. */
static void take_holder(const Report *r, const struct tp_table *table, const Row *row,
                        struct places *all, struct places *holders) {
  const Tracecollect__V1__Distribution *d =
      tp_row_distribution(row, tp_table_column(table, "waits"));
  const char *lock = tp_row_text(row, tp_table_column(table, "object"));
  const char *holder = tp_row_text(row, tp_table_column(table, "holder"));
  size_t stack = tp_table_column(table, "stack");
  char key[TP__PLACE], place[TP__PLACE];

  if (row->other || d == NULL || lock[0] == '\0') return;
  if (!is_of_lock(r, row, stack)) return;
  snprintf(key, sizeof key, "%.100s %.100s", lock, holder);
  struct place *p = find_place(all, lock, by_name), *h = find_place(holders, key, "");
  if (p == NULL || h == NULL) return;
  if (p->count == 0 && tp__place_words(r, tp_row_value(row, stack), place) && !tp__is_call(place))
    snprintf(p->of_program, sizeof p->of_program, "%s", place);
  add(p, d);
  add(h, d);
  if (h->total_ns < p->most_of_other_ns) return;
  p->most_of_other_ns = h->total_ns;
  snprintf(p->other, sizeof p->other, "%.100s", holder);
}

static tb_rc collect_locks(struct tp_summary *summary, const struct tp_summary_of *of,
                           struct places *out) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_CONTENTION);
  struct tp_table pairs, by_holder;
  struct places holders;

  TB_TRY(places_new(summary, out));
  TB_TRY(places_new(summary, &holders));
  tp_report_table(r, "by_pair", &pairs);
  for (size_t i = 0; i < pairs.table->n_rows; i++) take_pair(r, &pairs, pairs.table->rows[i], out);
  tp_report_table(r, "by_holder", &by_holder);
  for (size_t i = 0; i < by_holder.table->n_rows; i++)
    take_holder(r, &by_holder, by_holder.table->rows[i], out, &holders);
  return TB_OK;
}

static double weigh_lock(const struct place *p, uint64_t time_ns) {
  double share = time_ns > 0 ? (double)p->total_ns / (double)time_ns : 0;

  if (p->max_ns >= 100 * ms || share >= 0.5) return 440;
  return p->max_ns >= 10 * ms || share >= 0.05 ? 160 : 9;
}

static tb_rc say_lock(struct tp_summary *summary, const struct tp_summary_of *of,
                      const struct tp__draft *draft, const struct place *p, const char *what,
                      const char *ended) {
  char max[TP__WORDS], total[TP__WORDS], count[TP__WORDS];

  if (p->other[0] == '\0') ended = "";
  tp__ns_words(p->max_ns, max);
  if (p->count == 1)
    return tp__say(summary, of, draft, "A wait for %s took %s%s%s", what, max, ended, p->other);
  return tp__say(summary, of, draft, "Waits for %s: %s waits of %s together, the longest %s%s%s",
                 what, tp__count_words(p->count, count), tp__ns_words(p->total_ns, total), max,
                 ended, p->other);
}

static tb_rc say_locks(struct tp_summary *summary, const struct tp_summary_of *of) {
  struct tp__draft draft = { .kind = "lock", .report = "contention" };
  char what[2 * TP__PLACE];
  struct places all;

  TB_TRY(collect_locks(summary, of, &all));
  const struct place *p = with_most(&all);
  if (p == NULL || p->total_ns < ms) return TB_OK;
  draft.weight = weigh_lock(p, tp__time_of(of, TO_ANALYSIS_CONTENTION));
  if (strcmp(p->reason, by_name) == 0) {
    bool has_place = p->of_program[0] != '\0';
    draft.place = p->of_program;
    draft.more = " --table by_holder";
    snprintf(what, sizeof what, "lock %.100s%s%.200s", p->at, has_place ? " at " : "",
             p->of_program);
    return say_lock(summary, of, &draft, p, what, p->count == 1 ? "; held by " : "; held most by ");
  }
  draft.place = p->at;
  draft.more = " --table by_pair";
  snprintf(what, sizeof what, "a lock %s %.200s", tp__at(p->at), p->at);
  return say_lock(summary, of, &draft, p, what, "; released at ");
}

/* Goroutines that wait now, by place, those that wait since before the trace, too. Idle ones are in no row. */
static void collect_waiting(const Report *r, const struct tp_table *table, struct places *all) {
  size_t stack = tp_table_column(table, "stack"), reason = tp_table_column(table, "reason");
  size_t waiting = tp_table_column(table, "waiting");
  char place[TP__PLACE];

  for (size_t i = 0; i < table->table->n_rows; i++) {
    const Row *row = table->table->rows[i];
    const char *why = tp_row_text(row, reason);
    bool is_send = strcmp(why, "channel send") == 0;
    if (row->other || (!is_send && !is_of_lock(r, row, stack))) continue;
    if (!tp__place_words(r, tp_row_value(row, stack), place)) continue;
    struct place *p = find_place(all, place, is_send ? why : "lock");
    if (p != NULL) p->count += (uint64_t)tp_row_number(row, waiting);
  }
}

/* Has a wait ended there? Those that began before the trace are in no row. out_others: waits that may be there or elsewhere. */
static bool has_ended(const Report *r, const char *at, uint64_t *out_others) {
  struct tp_table table;
  char place[TP__PLACE];

  *out_others = 0;
  if (!tp_report_table(r, "by_pair", &table)) return true;
  size_t stack = tp_table_column(&table, "stack"), waits = tp_table_column(&table, "waits");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Row *row = table.table->rows[i];
    const Tracecollect__V1__Distribution *d = tp_row_distribution(row, waits);
    if (d == NULL || d->count == 0) continue;
    if (row->other)
      *out_others += d->count;
    else if (tp__place_words(r, tp_row_value(row, stack), place) && strcmp(place, at) == 0)
      return true;
  }
  return false;
}

/* A short trace shows a leak so, too: it takes a minute to call it one. */
static tb_rc say_pile(struct tp_summary *summary, const struct tp_summary_of *of) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_CONTENTION);
  struct tp__draft draft = {
    .kind = "pile", .report = "contention", .more = " --table queues", .weight = 570
  };
  const struct place *most = NULL;
  char count[TP__WORDS];
  struct tp_table table;
  struct places all;
  uint64_t others;

  if (!tp_report_table(r, "queues", &table)) return TB_OK;
  TB_TRY(places_new(summary, &all));
  collect_waiting(r, &table, &all);
  for (size_t i = 0; i < all.n; i++)
    if (most == NULL || all.place[i].count > most->count) most = &all.place[i];
  if (most == NULL || most->count < PILE_LEAST || has_ended(r, most->at, &others)) return TB_OK;
  if (others > most->count / 10) return TB_OK;
  if (tp__time_of(of, TO_ANALYSIS_CONTENTION) < 1000 * ms) return TB_OK;
  draft.place = most->at;
  return tp__say(summary, of, &draft,
                 "%s goroutines wait at %s (%s): %s wait that began there in this time has ended",
                 tp__count_words(most->count, count), most->at, most->reason,
                 others == 0 ? "no" : "hardly a");
}

/* A program may wait so by design: it is nothing to worry about. */
static tb_rc say_waits(struct tp_summary *summary, const struct tp_summary_of *of) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_BLOCK);
  struct tp__draft draft = {
    .kind = "wait", .report = "block", .more = " --table by_stack", .weight = 20
  };
  char place[TP__PLACE], total[TP__WORDS], count[TP__WORDS];
  struct tp_table table;
  struct places all;

  if (!tp_report_table(r, "by_stack", &table)) return TB_OK;
  TB_TRY(places_new(summary, &all));
  size_t stack = tp_table_column(&table, "stack"), reason = tp_table_column(&table, "reason");
  size_t blocked = tp_table_column(&table, "blocked");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Row *row = table.table->rows[i];
    const Tracecollect__V1__Distribution *d = tp_row_distribution(row, blocked);
    if (row->other || d == NULL || d->count == 0 || strcmp(tp_row_text(row, reason), "sleep") == 0)
      continue;
    if (!tp__place_words(r, tp_row_value(row, stack), place)) continue;
    struct place *p = find_place(&all, place, tp_row_text(row, reason));
    if (p != NULL) add(p, d);
  }
  const struct place *p = with_most(&all);
  if (p == NULL || p->count < CALLS_LEAST) return TB_OK;
  draft.place = p->at;
  return tp__say(summary, of, &draft, "Most waits were %s %s (%s): %s together, %s waits",
                 tp__at(p->at), p->at, p->reason, tp__ns_words(p->total_ns, total),
                 tp__count_words(p->count, count));
}

/* ---- CPU time ---- */

static tb_rc say_cpu(struct tp_summary *summary, const struct tp_summary_of *of) {
  const Report *r = tp__report_of(of, TO_ANALYSIS_CPU);
  struct tp__draft draft = { .kind = "cpu", .report = "cpu", .more = " --table by_stack" };
  char place[TP__PLACE], part[TP__WORDS], count[TP__WORDS];
  uint64_t samples = (uint64_t)tp_value_number(tp_report_figure(r, "samples"));
  struct tp_table table;
  struct places all;

  if (samples < 20 || !tp_report_table(r, "by_stack", &table)) return TB_OK;
  TB_TRY(places_new(summary, &all));
  size_t stack = tp_table_column(&table, "stack"), n = tp_table_column(&table, "samples");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Row *row = table.table->rows[i];
    if (row->other || !tp__place_words(r, tp_row_value(row, stack), place)) continue;
    place[strcspn(place, ":")] = '\0'; /* a line is too little */
    struct place *p = find_place(&all, place, "");
    if (p != NULL) p->total_ns += (uint64_t)tp_row_number(row, n);
  }
  const struct place *p = with_most(&all);
  if (p == NULL || p->total_ns == 0) return TB_OK;
  double share = (double)p->total_ns / (double)samples;
  draft.place = p->at;
  draft.weight = 15;
  return tp__say(summary, of, &draft, "CPU time: %s of it in %s (%s samples)",
                 tp__share_words(share, part), p->at, tp__count_words(samples, count));
}

tb_rc tp__summary_places(struct tp_summary *summary, const struct tp_summary_of *of) {
  TB_TRY(say_open_call(summary, of));
  TB_TRY(say_calls(summary, of));
  TB_TRY(say_locks(summary, of));
  TB_TRY(say_pile(summary, of));
  TB_TRY(say_waits(summary, of));
  return say_cpu(summary, of);
}
