/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of triggers: their list, their firings, the snaps that they order, and the traces that they keep.
 *
 *   FILE (trigger.file) ──┐                       ┌──> loops: a copy each, when the version has changed
 *   STATE/triggers ───────┴──> rules ──version────┘
 *   loops ──fired──> log, counts, snaps ──thread──> recorders ──SNAP──> agents
 *                └─> keeps, firings ──thread──> STATE/kept, STATE/firings
 *
 * Rules of FILE are read at the start and at SIGHUP. Rules of the state folder are added and removed one at a time, and survive a restart.
 *
 * Snaps, commands and webhooks are limited by the keys trigger.*, or by the rule itself: what is too soon or too often is left out, and
 * the log and the history name it. The limits hold across a restart, as far as the history goes back.
 *
 * Memory    a few KiB a rule; at most one waiting snap of a rule.
 * Threads   open, start, reload, stop, free: the main thread's. fired, rules: the loops'. Others: any.
 * Errors    TB_BROKEN: a rule is wrong, diag has file, line and word; TB_IO: a file; TB_NOTFOUND: no such rule; TB_REFUSED: the rule
 *           is in FILE, or its name is taken; TB_NOMEM. The rules are unchanged then.
 */
#ifndef TC_TRIGGER_TRIGGERS_H
#define TC_TRIGGER_TRIGGERS_H

#include "collector/findings/findings.h"
#include "collector/ingest/recorders.h"
#include "collector/keep/keeps.h"
#include "collector/trigger/firings.h"
#include "config/table.h"
#include "trigger/watch.h"

struct tc_triggers;

struct tc_triggers_env {
  const struct tc_config *config; /* keys trigger.* */
  int state_fd;                   /* the state folder */
  struct tc_recorders *recorders; /* must outlive the triggers */
  struct tc_keeps *keeps;         /* of the store; must outlive the triggers */
  struct tc_findings *findings;   /* the thread gives them their turns; NULL: none */
};

TB_MUST tb_rc tc_triggers_open(const struct tc_triggers_env *env, struct tb_diag *diag,
                               struct tc_triggers **out);
TB_MUST tb_rc tc_triggers_start(struct tc_triggers *t); /* starts the thread */
void tc_triggers_stop(struct tc_triggers *t); /* after tc_recorders_stop(); NULL is fine */
void tc_triggers_free(struct tc_triggers *t);
TB_MUST tb_rc tc_triggers_reload(struct tc_triggers *t, struct tb_diag *diag);
uint64_t tc_triggers_turns(const struct tc_triggers *t); /* at least one a second; any thread */

/* --- the loops --- */

uint64_t tc_triggers_version(const struct tc_triggers *t);
/* Copies the rules and their version. */
TB_MUST tb_rc tc_triggers_rules(struct tc_triggers *t, struct tr_rules **out,
                                uint64_t *out_version);

struct tc_trigger_firing {
  const struct tr_fired *fired;
  uint32_t ref; /* of the stream, for the log */
  const unsigned char *stream;
  const char *service, *instance;
  uint64_t gen, wall_ns; /* of the generation's end; 0: unknown */
};
/* Returns the number of actions that are left out. */
unsigned tc_triggers_fired(struct tc_triggers *t, const struct tc_trigger_firing *firing);

/* --- readers --- */

struct tc_firings *tc_triggers_firings(struct tc_triggers *t); /* until tc_triggers_free() */

TB_MUST tb_rc tc_triggers_add(struct tc_triggers *t, const char *text, struct tb_diag *diag);
TB_MUST tb_rc tc_triggers_remove(struct tc_triggers *t, const char *name, struct tb_diag *diag);

struct tc_trigger_status {
  char name[TR_NAME_MAX + 1];
  bool is_added;    /* false: it is in FILE */
  uint64_t limited; /* firings since the collector's start with an action left out */
  uint64_t fired;   /* since the start; if not 0, the fields below describe the last firing */
  uint64_t gen, wall_ns;
  unsigned char stream[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  char words[TR_WORDS_MAX];
};
/* Calls take for each rule in order, until it returns another code than TB_OK. The lock is held meanwhile. */
TB_MUST tb_rc tc_triggers_each(struct tc_triggers *t, void *self,
                               tb_rc (*take)(void *self, const struct tc_trigger_status *status,
                                             const char *text));

#endif
