/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the rules of one stream after each generation against reports of the analyses, and reports rules that fire.
 *
 * A rule fires when it was met in the required number of generations in a row. It can fire again only after a generation
 * that did not meet it. A condition on a figure that the report does not have is not met. Each report is made once for all
 * rules, and without quantiles unless a rule needs them.
 *
 * Memory    a few bytes a rule, from mem.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the report or the findings could not be made; counts of generations do not change.
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

/* Holds the rules. Rules for other streams are ignored: tr_rule_is_about(). */
TB_MUST tb_rc tr_watch_new(struct tb_mem *mem, struct tr_rules *rules, const char *service,
                           const char *instance, struct tr_watch **out);
void tr_watch_free(struct tr_watch *watch);            /* accepts NULL */
unsigned tr_watch_count(const struct tr_watch *watch); /* number of rules about the stream */

/* Call after to_analyses_generation_ends(). */
TB_MUST tb_rc tr_watch_generation(struct tr_watch *watch, struct to_analyses *analyses,
                                  const struct tr_fired_sink *sink);
/* A generation is broken or missing: counts of generations in a row begin again. */
void tr_watch_hole(struct tr_watch *watch);

#endif
