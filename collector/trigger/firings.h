/* SPDX-License-Identifier: Apache-2.0 */
/* What fired: the newest firings of each rule, oldest first.
 *
 * They lie in the file `firings` of the state folder, a firing a line:
 *
 *     1764271264000000000 1764271263000000000 41 07070707070707070707070707070707 slow shop host:1 exec:page,!webhook:chat sched.latency.p99 is 61.304 ms
 *
 * its id, when the generation ended as traced, the generation, the stream, the rule, service and instance, what was begun (what the helper
 * unit is to do, and snap), and behind ! what is left out because the rule did it too often (- for nothing), what the rule saw. An id is the time when it was noted, in ns
 * since 1970 on the collector's clock, and higher than that of any firing before.
 *
 * Memory    at most TC_FIRINGS_MAX, each as long as its texts. One more takes the place of the oldest of the rule that has the most, so that a
 *           rule that fires all the time takes none of another's: each of N rules has at least TC_FIRINGS_MAX / N. Of that rule what was begun
 *           within the last hour goes last: the helper unit may still have to do it, and it counts in the rule's pace.
 * Threads   any, but for open and free.
 * Errors    TB_IO: the file cannot be read or written; TB_NOMEM.
 */
#ifndef TC_TRIGGER_FIRINGS_H
#define TC_TRIGGER_FIRINGS_H

#include "base/result.h"
#include "proto/names.h"

enum { TC_FIRINGS_MAX = 2000 };

struct tc_firing {
  uint64_t id;      /* chosen by add */
  uint64_t wall_ns; /* 0: unknown */
  uint64_t gen;
  unsigned char stream[TC_STREAM_BYTES];
  const char *rule, *service, *instance, *words;
  const char *actions; /* to be done, as in tr_rule; "": none */
  bool has_snap;       /* a snap was ordered */
  bool has_keep;       /* what was traced around it is kept; for add alone */
  const char *limited; /* the same, and snap, of what is left out */
};

struct tc_firings;

/* A line that is wrong is left out, or all of a file that the disk has lost; *out_wrong says so, and is cleared first. */
TB_MUST tb_rc tc_firings_open(int state_fd, struct tb_diag *diag, struct tb_diag *out_wrong,
                              struct tc_firings **out);
void tc_firings_free(struct tc_firings *firings); /* NULL is fine */

TB_MUST tb_rc tc_firings_add(struct tc_firings *firings, const struct tc_firing *firing);

struct tc_firings_ask {
  uint64_t after;        /* those with an id above */
  const char *rule;      /* "": of any rule */
  size_t newest;         /* only so many; 0: all */
  size_t newest_of_rule; /* of each rule only so many; 0: all */
};
/* Those, oldest first, until one call answers anything but TB_OK. The lock is held meanwhile, and the texts are lent for the
 * call. */
TB_MUST tb_rc tc_firings_each(struct tc_firings *firings, const struct tc_firings_ask *ask,
                              void *self,
                              tb_rc (*take)(void *self, const struct tc_firing *firing));
/* Writes the file if they are others than it has. */
TB_MUST tb_rc tc_firings_save(struct tc_firings *firings, struct tb_diag *diag);
/* The same now and then; now_ns: of the monotonic clock. At once where something was begun or is kept for one of them, else at
 * most every 10 s: a threshold may be passed all the time, and all 2,000 are written. */
TB_MUST tb_rc tc_firings_save_paced(struct tc_firings *firings, uint64_t now_ns,
                                    struct tb_diag *diag);

#endif
