/* SPDX-License-Identifier: Apache-2.0 */
/* Trigger rules: conditions that are checked for each stream after each generation, and the actions if they are met.
 *
 *   [TRIGGER] NAME WHEN CONDITION [AND CONDITION]... [OF SERVICE[/INSTANCE]] [IN WINDOW] [FOR N GENERATIONS] DO ACTION[, ACTION]...
 *
 *   slow-sched WHEN sched.latency.p99 > 50ms FOR 3 GENERATIONS DO alert, snap service
 *   stuck WHEN finding deadlock OF shop-* DO alert
 *
 * CONDITION is one of trigger/condition.h, or "finding NAME" (enum to_finding_kind). OF: names; a * at the end matches any
 * rest. IN: the window of the figures, default 10s. FOR: the number of generations in a row, default 1. ACTION:
 *
 *   alert                                publishes a message on the feed, with topic alert
 *   snap [stream|service|all] [last D]   asks flight recorders for their newest events: of this stream, its service, or all
 *   keep [stream|service|all] [D before] [D after]   protects segments from retention: from so long before to so long after
 *                                        the end of the generation, default 30s and 10s
 *   exec NAME, webhook NAME              tracecollect-actions runs the command, or calls the URL, of that name
 *
 * snap, exec and webhook may be followed by "every D", the least time between two, and "max N an hour". Both limit the
 * rule's action for all streams together; 0 is no limit.
 *
 * Keywords are accepted in any case. Names that begin with "alert." are reserved for built-in rules: the keys alert.*.
 *
 * Memory    a set owns its rules, and does not change once it is in use.
 * Threads   use each set from one thread at a time.
 * Errors    TB_BROKEN with the reason and the wrong word in diag; TB_BUDGET: too many rules; TB_NOMEM.
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
  TR_ACTIONS_MAX = 8, /* exec and webhook together */
  TR_ACTIONS_BYTES = TR_ACTIONS_MAX * (8 + TR_NAME_MAX + 1),
  TR_GENERATIONS_MAX = 10000,
  TR_HOUR_MAX = 1000000
};

struct tr_term { /* one condition of a rule */
  bool is_finding;
  enum to_finding_kind finding;
  struct tr_condition condition;
  enum to_analysis_kind kind; /* report of the condition */
};

/* Streams that an action applies to. */
enum tr_reach { TR_REACH_NONE, TR_REACH_STREAM, TR_REACH_SERVICE, TR_REACH_ALL };

/* Limits of a rule's action; the configuration has the defaults (trigger.every, trigger.hour_max). */
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
  uint64_t snap_last_ns; /* 0: everything that recorders have */
  struct tr_pace snap_pace;
  enum tr_reach keep;
  uint64_t keep_before_ns, keep_after_ns;
  char actions[TR_ACTIONS_BYTES]; /* exec and webhook, as in "exec:page,webhook:chat"; "": none */
  struct tr_pace action_pace[TR_ACTIONS_MAX]; /* of each of actions */
};

struct tr_rules;

TB_MUST tb_rc tr_rules_new(struct tr_rules **out);
void tr_rules_hold(struct tr_rules *rules);    /* adds a holder */
void tr_rules_release(struct tr_rules *rules); /* the last holder frees the rules; accepts NULL */
TB_MUST tb_rc tr_rules_add(struct tr_rules *rules, const char *text, struct tb_diag *diag);
/* Adds a rule that is not from trigger.file: exec and webhook are refused. */
TB_MUST tb_rc tr_rules_add_by_hand(struct tr_rules *rules, const char *text, struct tb_diag *diag);
/* Adds a rule per line, except empty lines and lines that begin with #. name: source of the text, for diag. */
TB_MUST tb_rc tr_rules_add_lines(struct tr_rules *rules, const char *name, const char *text,
                                 struct tb_diag *diag);
/* Adds the rules of a file. TB_IO: the file cannot be read. */
TB_MUST tb_rc tr_rules_read(struct tr_rules *rules, const char *path, struct tb_diag *diag);

unsigned tr_rules_count(const struct tr_rules *rules);
const struct tr_rule *tr_rules_at(const struct tr_rules *rules, unsigned i);
/* actions: as in struct tr_rule. */
bool tr_action_is_in(const char *actions, const char *one);
/* Does the rule apply to this stream? A name that is NULL (unknown) matches. */
bool tr_rule_is_about(const struct tr_rule *rule, const char *service, const char *instance);

#endif
