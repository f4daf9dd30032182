/* SPDX-License-Identifier: Apache-2.0 */
/* One stream, watched by rules: after each generation it asks the analyses for what the rules need, and says which of them
 * fire.
 *
 * A rule fires when it has been met in so many generations in a row as it says, and again once it was not met meanwhile. A
 * figure that a report does not know does not meet a condition.
 *
 * A report is made once for all rules that need its kind and window, without quantiles where none is asked for.
 *
 * Memory    a few bytes a rule, from mem.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: of the report, or of the findings; no rule is further or less far than before.
 */
#ifndef TR_TRIGGER_WATCH_H
#define TR_TRIGGER_WATCH_H

#include "trigger/rule.h"

enum { TR_WORDS_MAX = 512 };

struct tr_fired {
  const struct tr_rule *rule;
  char words[TR_WORDS_MAX]; /* "sched.latency.p99 is 61.3 ms, for 3 generations" */
};

struct tr_fired_sink {
  void *self;
  void (*fired)(void *self, const struct tr_fired *fired); /* lent for the call */
};

struct tr_watch;

/* It holds the rules. Rules that are not about the stream are left out: tr_rule_is_about(). */
TB_MUST tb_rc tr_watch_new(struct tb_mem *mem, struct tr_rules *rules, const char *service,
                           const char *instance, struct tr_watch **out);
void tr_watch_free(struct tr_watch *watch); /* NULL is fine */

/* After to_analyses_generation_ends(): the generation is whole. */
TB_MUST tb_rc tr_watch_generation(struct tr_watch *watch, struct to_analyses *analyses,
                                  const struct tr_fired_sink *sink);
/* A generation was broken or is missing: what comes next is not in a row with what was. */
void tr_watch_hole(struct tr_watch *watch);

#endif
