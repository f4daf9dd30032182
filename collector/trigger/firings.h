/* SPDX-License-Identifier: Apache-2.0 */
/* The newest firings of each rule, oldest first.
 *
 * They are stored in the file `firings` of the state folder, one a line:
 *
 *     1764271264000000000 1764271263000000000 41 07070707070707070707070707070707 slow shop host:1 exec:page,!webhook:chat sched.latency.p99 is 61.304 ms
 *
 * id, end of the generation as traced, generation, stream, rule, service, instance, actions, and what the rule saw. Actions are those begun
 * (by the helper unit, or snap) and, after a !, those left out because the rule did them too often; - for none. An id is the time when the
 * firing was noted, in ns since 1970 on the collector's clock; it is higher than all earlier ids.
 *
 * Memory    at most TC_FIRINGS_MAX, each as long as its texts. A further firing replaces the oldest one of the rule that has
 *           the most firings. So a rule that fires all the time does not displace the firings of other rules, and each of N
 *           rules can keep at least TC_FIRINGS_MAX / N. Of a rule's firings, those with an action that was begun in the last
 *           hour are replaced last: the helper unit may still have to do it, and it counts for the pace.
 * Threads   any, except open and free.
 * Errors    TB_IO: the file cannot be read or written; TB_NOMEM.
 */
#ifndef TC_TRIGGER_FIRINGS_H
#define TC_TRIGGER_FIRINGS_H

#include "base/result.h"
#include "proto/names.h"

enum { TC_FIRINGS_MAX = 2000 };

struct tc_firing {
  uint64_t id;      /* set by add */
  uint64_t wall_ns; /* 0: unknown */
  uint64_t gen;
  unsigned char stream[TC_STREAM_BYTES];
  const char *rule, *service, *instance, *words;
  const char *actions; /* actions to be done, as in tr_rule; "": none */
  bool has_snap;       /* a snap was ordered */
  bool has_keep;       /* traces around it are kept; for add only */
  const char *limited; /* actions, and snap, that were left out */
};

struct tc_firings;

/* Wrong lines are skipped, or the whole file if its disk lost it; *out_wrong is cleared first and then says so. */
TB_MUST tb_rc tc_firings_open(int state_fd, struct tb_diag *diag, struct tb_diag *out_wrong,
                              struct tc_firings **out);
void tc_firings_free(struct tc_firings *firings); /* NULL is fine */

TB_MUST tb_rc tc_firings_add(struct tc_firings *firings, const struct tc_firing *firing);

struct tc_firings_ask {
  uint64_t after;        /* only higher ids */
  const char *rule;      /* "": any rule */
  size_t newest;         /* only so many of the newest; 0: all */
  size_t newest_of_rule; /* only so many of each rule; 0: all */
};
/* Calls take for these firings, oldest first, until it returns another code than TB_OK. The lock is held during the call, and the texts are
 * lent for it. */
TB_MUST tb_rc tc_firings_each(struct tc_firings *firings, const struct tc_firings_ask *ask,
                              void *self,
                              tb_rc (*take)(void *self, const struct tc_firing *firing));
/* Writes the file if the firings have changed. */
TB_MUST tb_rc tc_firings_save(struct tc_firings *firings, struct tb_diag *diag);
/* Calls tc_firings_save() if it is due: at once if an action was begun or traces are kept for one of the new firings, otherwise at most
 * every 10 s, because a threshold may be passed all the time and all 2,000 are written. now_ns: monotonic. */
TB_MUST tb_rc tc_firings_save_paced(struct tc_firings *firings, uint64_t now_ns,
                                    struct tb_diag *diag);

#endif
