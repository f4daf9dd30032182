/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences on what stands out in reports and findings, the most important first: `tracectl report` and the page begin with them.
 *
 *   tp_summary_init(&summary, &arena);
 *   TB_TRY(tp_summary_add(&summary, &of));  -- for each program or service
 *   TB_TRY(tp_summary_take(&summary, &reply));
 *
 * A finding weighs more than a figure, a task more than what it waits for, and that more than pauses of the whole program. A place is
 * named once. Goroutines of the runtime and of an agent are in no sentence, idle waits neither. A sentence whose weight is below
 * TP_SUMMARY_WORTH is nothing to worry about; if there is no other, the first sentence says so.
 *
 * Memory    all from the arena, the reply too; reports and findings are lent until tp_summary_take().
 * Errors    TB_NOMEM, TB_BUDGET.
 */
#ifndef TP_PACK_SUMMARY_SUMMARY_H
#define TP_PACK_SUMMARY_SUMMARY_H

#include "base/arena.h"
#include "online/analysis/analysis.h"
#include "proto/archive.pb-c.h"

enum {
  TP_SUMMARY_SENTENCES = 7, /* with a command each and a line above them: 15 lines */
  TP_SUMMARY_WORTH = 100,
};

/* A finding of one service, or of a file. Texts are lent. */
struct tp_summary_finding {
  const char *kind, *words;
  const char *place; /* "main.reserve:27"; "": none */
  const char *cause; /* "": none */
  const char *id;    /* "": of a file */
  bool is_open;
};

/* Reports of one program, or the sums of a service. A kind that is missing makes no sentence. */
struct tp_summary_of {
  Tracecollect__V1__StreamReport *const *report;
  size_t reports;
  const struct tp_summary_finding *finding;
  size_t findings;
  const char *service; /* "": a file */
  const char *
      source; /* words of a command that name the trace: "t.trace", "--service shop"; "": it cannot be read again */
  const char *window; /* likewise: " --window 1m" or "" */
};

struct tp_summary {
  struct tb_arena *arena;
  Tracecollect__V1__Sentence **sentence;
  size_t n, room;
  uint64_t streams, generations, events, time_ns;
};

/* The kinds of reports that make sentences. */
bool tp_summary_needs(enum to_analysis_kind kind);

void tp_summary_init(struct tp_summary *summary, struct tb_arena *arena);
TB_MUST tb_rc tp_summary_add(struct tp_summary *summary, const struct tp_summary_of *of);
TB_MUST tb_rc tp_summary_take(struct tp_summary *summary, Tracecollect__V1__SummaryReply **out);

/* Is it a function of the runtime, or of an agent? */
bool tp_is_foreign(const char *function);
/* Quotes a word for a shell, if it needs quotes. */
TB_MUST tb_rc tp_summary_quote(struct tb_arena *arena, const char *word, const char **out);
/* Says a finding in one sentence; cut to bytes. */
void tp_finding_words(const struct to_finding *finding, char *out, size_t bytes);

#endif
