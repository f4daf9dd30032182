/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of triggers: what is looked for in each stream after each generation, and what is done then.
 *
 *   [TRIGGER] NAME WHEN CONDITION [AND CONDITION]... [OF SERVICE[/INSTANCE]] [IN WINDOW] [FOR N GENERATIONS] DO ACTION[, ACTION]...
 *
 *   slow-sched WHEN sched.latency.p99 > 50ms FOR 3 GENERATIONS DO alert, snap service
 *   stuck WHEN finding deadlock OF shop-* DO alert
 *
 * CONDITION is one of trigger/condition.h, or "finding NAME" (enum to_finding_kind). OF: names, a * at the end stands for
 * anything. IN: the window of the figures, 10s if none is named. FOR: so many generations in a row, 1 if none is named. ACTION:
 *
 *   alert                                a message on the feed, with topic alert
 *   snap [stream|service|all] [last D]   flight recorders send what they keep: of this stream, of its service, all there are
 *   keep [stream|service|all] [D before] [D after]   retention spares what was traced so long before and after the end of the
 *                                        generation: 30s and 10s where it does not say
 *   exec NAME, webhook NAME              tracecollect-actions runs its command, or calls its URL, of that name
 *
 * Behind snap, exec and webhook may stand "every D", the least time between two of them, and "max N an hour": how often this rule
 * does it, whatever the stream. 0 is no limit.
 *
 * Words that are not names may be in small letters, too. Names that begin with "alert." are those of rules that are built in: the
 * collector's keys alert.*.
 *
 * Memory    a set owns its rules. A set of rules is not changed once it is in use.
 * Threads   use each set from one thread at a time.
 * Errors    TB_BROKEN with the reason, and the word that is wrong, in diag; TB_BUDGET: there are too many; TB_NOMEM.
 */
#ifndef TR_TRIGGER_RULE_H
#define TR_TRIGGER_RULE_H

#include "online/analysis/analysis.h"
#include "trigger/condition.h"

enum {
  TR_RULES_MAX = 32,
  TR_RULE_TEXT_MAX = 1024,
  TR_NAME_MAX = 32,
  TR_PATTERN_MAX = 64,
  TR_TERMS_MAX = 4,
  TR_ACTIONS_MAX = 8, /* exec and webhook */
  TR_ACTIONS_BYTES = TR_ACTIONS_MAX * (8 + TR_NAME_MAX + 1),
  TR_GENERATIONS_MAX = 10000,
  TR_HOUR_MAX = 1000000
};

struct tr_term { /* one condition of a rule */
  bool is_finding;
  enum to_finding_kind finding;
  struct tr_condition condition;
  enum to_analysis_kind kind; /* of the condition */
};

/* Of an action. */
enum tr_reach { TR_REACH_NONE, TR_REACH_STREAM, TR_REACH_SERVICE, TR_REACH_ALL };

/* How often a rule does one of its actions; what it does not say is the collector's to say. */
struct tr_pace {
  bool has_every, has_hour_max;
  uint64_t every_ns, hour_max; /* 0: no limit */
};

struct tr_rule {
  char name[TR_NAME_MAX + 1];
  char text[TR_RULE_TEXT_MAX + 1]; /* as given, without TRIGGER */
  unsigned terms, generations;
  struct tr_term term[TR_TERMS_MAX];
  enum to_window window;
  char service[TR_PATTERN_MAX + 1], instance[TR_PATTERN_MAX + 1]; /* "*": any */
  bool alert;
  enum tr_reach snap;
  uint64_t snap_last_ns; /* 0: all that recorders have */
  struct tr_pace snap_pace;
  enum tr_reach keep;
  uint64_t keep_before_ns, keep_after_ns;
  char actions[TR_ACTIONS_BYTES]; /* exec and webhook, as in "exec:page,webhook:chat"; "": none */
  struct tr_pace action_pace[TR_ACTIONS_MAX]; /* of each of them */
};

struct tr_rules;

TB_MUST tb_rc tr_rules_new(struct tr_rules **out);
void tr_rules_hold(struct tr_rules *rules);   /* one more holder: as many let go of it */
void tr_rules_let_go(struct tr_rules *rules); /* the last one frees it; NULL is fine */
TB_MUST tb_rc tr_rules_add(struct tr_rules *rules, const char *text, struct tb_diag *diag);
/* The same of a rule that is not of a file: it may not exec nor webhook. */
TB_MUST tb_rc tr_rules_add_by_hand(struct tr_rules *rules, const char *text, struct tb_diag *diag);
/* A rule a line. Lines that are empty or begin with # are passed over; name: of the text, for diag. */
TB_MUST tb_rc tr_rules_add_lines(struct tr_rules *rules, const char *name, const char *text,
                                 struct tb_diag *diag);
/* The same of a file. TB_IO: it cannot be read. */
TB_MUST tb_rc tr_rules_read(struct tr_rules *rules, const char *path, struct tb_diag *diag);

unsigned tr_rules_count(const struct tr_rules *rules);
const struct tr_rule *tr_rules_at(const struct tr_rules *rules, unsigned i);
/* actions: as in tr_rule. */
bool tr_action_is_in(const char *actions, const char *one);
/* A name that is NULL is not known: it may be any. */
bool tr_rule_is_about(const struct tr_rule *rule, const char *service, const char *instance);

#endif
