/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/summary/summary.h"

#include <stdlib.h>
#include <string.h>

#include "online/words/words.h"
#include "pack/report_read.h"
#include "pack/summary/private.h"

typedef Tracecollect__V1__Sentence sentence;

bool tp_summary_needs(enum to_analysis_kind kind) {
  switch (kind) {
  case TO_ANALYSIS_SYSCALL:
  case TO_ANALYSIS_STW:
  case TO_ANALYSIS_SCHED:
  case TO_ANALYSIS_GOROUTINES:
  case TO_ANALYSIS_TASKS:
  case TO_ANALYSIS_HEAP:
  case TO_ANALYSIS_CPU:
  case TO_ANALYSIS_CONTENTION:
  case TO_ANALYSIS_BLOCK:
  case TO_ANALYSIS_GC:
  case TO_ANALYSIS_PROCS: return true;
  default: return false;
  }
}

void tp_summary_init(struct tp_summary *summary, struct tb_arena *arena) {
  *summary = (struct tp_summary){ .arena = arena };
}

/* ---- what was looked at ---- */

/* All reports are of the same events; one of them may be missing. */
static void count_looked_at(struct tp_summary *summary, const struct tp_summary_of *of) {
  uint64_t streams = 0, generations = 0, events = 0;

  for (size_t i = 0; i < of->reports; i++) {
    const Tracecollect__V1__StreamReport *r = of->report[i];
    uint64_t n = r->last_gen > 0 ? r->last_gen - r->first_gen + 1 : 0;
    if (r->events > events) events = r->events;
    if (n > generations) generations = n;
    if (r->instances > streams) streams = r->instances;
    if (tp__length_of(r) > summary->time_ns) summary->time_ns = tp__length_of(r);
  }
  summary->streams += streams > 0 ? streams : of->reports > 0;
  summary->generations += generations;
  summary->events += events;
}

/* Says the sentences of a C program, from the one of this number on, in its words. */
static tb_rc use_own_words(struct tp_summary *summary, const struct tp_summary_of *of,
                           size_t from) {
  enum to_program program = of->reports > 0 ? tp_report_program(of->report[0]) : TO_PROGRAM_GO;

  for (size_t i = from; i < summary->n && program != TO_PROGRAM_GO; i++) {
    sentence *s = summary->sentence[i];
    size_t n = to_words_write(program, s->text, NULL, 0) + 1;
    char *text;

    TB_TRY(tb_arena_alloc(summary->arena, n, &text));
    (void)to_words_write(program, s->text, text, n);
    s->text = text;
  }
  return TB_OK;
}

tb_rc tp_summary_add(struct tp_summary *summary, const struct tp_summary_of *of) {
  size_t from = summary->n;

  count_looked_at(summary, of);
  TB_TRY(tp__summary_findings(summary, of));
  TB_TRY(tp__summary_figures(summary, of));
  TB_TRY(tp__summary_places(summary, of));
  return use_own_words(summary, of, from);
}

/* ---- the choice ---- */

static int compare(const void *a, const void *b) {
  const sentence *x = *(sentence *const *)a, *y = *(sentence *const *)b;

  if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
  int by_service = strcmp(x->service, y->service);
  return by_service != 0 ? by_service : strcmp(x->text, y->text);
}

/* A place is named once, by the sentence that weighs most; but a convoy has no figures, so those of its lock follow. */
static bool is_of_place(const sentence *s, const sentence *other) {
  bool is_its_lock = strcmp(s->kind, "lock") == 0 && strcmp(other->kind, "convoy") == 0;
  size_t n = strcspn(s->place, ":");

  return n > 0 && !is_its_lock && strcmp(s->service, other->service) == 0 &&
         strncmp(s->place, other->place, n) == 0 && strcspn(other->place, ":") == n;
}

/* Sentences that are worth telling are followed by no others, but for the slowest task. */
static size_t choose(struct tp_summary *summary, uint32_t least) {
  size_t n = 0;

  for (size_t i = 0; i < summary->n && n < TP_SUMMARY_SENTENCES; i++) {
    sentence *s = summary->sentence[i];
    bool is_known = s->weight < least && strcmp(s->kind, "task") != 0;
    for (size_t k = 0; k < n && !is_known; k++) is_known = is_of_place(s, summary->sentence[k]);
    if (!is_known) summary->sentence[n++] = s;
  }
  return n;
}

static tb_rc say_nothing(struct tp_summary *summary) {
  static const struct tp_summary_of all = { .service = "", .source = "", .window = "" };
  const struct tp__draft draft = { .kind = "nothing", .report = "", .weight = TP_SUMMARY_WORTH };
  const char *more = summary->n > 0 ? " The largest figures:" : "";

  if (summary->events == 0) return tp__say(summary, &all, &draft, "Nothing to look at: no events.");
  return tp__say(summary, &all, &draft,
                 "Nothing stands out: no finding, no long task, wait, system call or pause.%s",
                 more);
}

tb_rc tp_summary_take(struct tp_summary *summary, Tracecollect__V1__SummaryReply **out) {
  Tracecollect__V1__SummaryReply *reply;
  bool is_worth = false;

  for (size_t i = 0; i < summary->n; i++)
    is_worth |= summary->sentence[i]->weight >= TP_SUMMARY_WORTH;
  if (!is_worth) TB_TRY(say_nothing(summary));
  qsort(summary->sentence, summary->n, sizeof *summary->sentence, compare);
  TB_TRY(tb_arena_alloc(summary->arena, sizeof *reply, &reply));
  tracecollect__v1__summary_reply__init(reply);
  reply->n_sentences = choose(summary, is_worth ? TP_SUMMARY_WORTH : 0);
  reply->sentences = summary->sentence;
  reply->streams = summary->streams;
  reply->generations = summary->generations;
  reply->events = summary->events;
  reply->time_ns = summary->time_ns;
  *out = reply;
  return TB_OK;
}
