/* SPDX-License-Identifier: Apache-2.0 */
/* Firings that wait for an action: a queue for each rule, served in turn, so that a rule that fires all the time, or must be
 * retried, delays no other. Firings of a rule are done in order.
 *
 * Memory    at most AC_WAITING_MAX firings. A further firing replaces the oldest one of the rule that has the most firings.
 * Threads   use each object from one thread at a time.
 * Time      monotonic, passed in.
 */
#ifndef AC_WAITING_H
#define AC_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/actions/config.h"

enum { AC_WAITING_MAX = 1000 };

struct ac_task { /* one firing's */
  uint64_t id;
  char rule[AC_RULE_MAX + 1];
  char *text; /* input of the action; freed with the task */
  size_t len;
  unsigned pause_ms; /* before this try; 0: first try */
};

struct ac_queue;

struct ac_waiting { /* zeroed: empty */
  struct ac_queue *queues;
  size_t n;
  uint64_t turns;
};

/* Owns the task. *out_given_up: the task that was dropped for it, now the caller's; text NULL: none. TB_NOMEM: the caller keeps the
 * task. */
TB_MUST tb_rc ac_waiting_put(struct ac_waiting *waiting, const struct ac_task *task,
                             struct ac_task *out_given_up);
/* Returns false if none is due. Otherwise *out is the caller's, and no other task of its rule is taken until ac_waiting_over() or
 * ac_waiting_later(). */
bool ac_waiting_take(struct ac_waiting *waiting, uint64_t now_ns, struct ac_task *out);
void ac_waiting_over(struct ac_waiting *waiting, struct ac_task *task); /* frees its text */
/* Puts the task back as the first of its rule, due at that time. */
void ac_waiting_later(struct ac_waiting *waiting, const struct ac_task *task, uint64_t due_ns);
/* Returns when the next is due; UINT64_MAX: none. */
uint64_t ac_waiting_due(const struct ac_waiting *waiting);
void ac_waiting_fini(struct ac_waiting *waiting);

#endif
