/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for an action: a queue for each rule, served in turn, so that one rule that fires all the time, or whose firings have to be
 * tried again, delays no other. A rule's firings are done in their order.
 *
 * Memory    at most AC_WAITING_MAX firings. One more takes the place of the oldest of the rule that has the most.
 * Threads   use each object from one thread at a time.
 * Time      monotonic, given by the caller.
 */
#ifndef AC_WAITING_H
#define AC_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/actions/config.h"

enum { AC_WAITING_MAX = 1000 };

struct ac_task { /* of one firing */
  uint64_t id;
  char rule[AC_RULE_MAX + 1];
  char *text; /* what the action is given; freed with the task */
  size_t len;
  unsigned pause_ms; /* behind the try before this one; 0: it is the first */
};

struct ac_queue;

struct ac_waiting { /* zeroed: nothing waits */
  struct ac_queue *queues;
  size_t n;
  uint64_t turns;
};

/* Owns the task. *out_given_up: one that had to go, the caller's; its text NULL: none had to. TB_NOMEM: it is still the caller's. */
TB_MUST tb_rc ac_waiting_put(struct ac_waiting *waiting, const struct ac_task *task,
                             struct ac_task *out_given_up);
/* False: none is due. Else *out is the caller's, and no other of its rule is taken until ac_waiting_over() or _later(). */
bool ac_waiting_take(struct ac_waiting *waiting, uint64_t now_ns, struct ac_task *out);
void ac_waiting_over(struct ac_waiting *waiting, struct ac_task *task); /* frees its text */
/* It is the first of its rule again, at that time. */
void ac_waiting_later(struct ac_waiting *waiting, const struct ac_task *task, uint64_t due_ns);
/* When the next is due; UINT64_MAX: none is. */
uint64_t ac_waiting_due(const struct ac_waiting *waiting);
void ac_waiting_fini(struct ac_waiting *waiting);

#endif
