/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of this process: what was registered, and as text what the trace says of it.
 *
 * Numbers are given once and never again, so that they hold in every session. The text stands in each generation before
 * the first event that needs it: the flusher writes it first in every generation, and a registration in the
 * middle of one posts it at once.
 *
 * Memory    static.
 * Threads   any; a thread reads the row of its number without a lock.
 */
#ifndef TA_EMIT_EVENTS_EXPERIMENTS_H
#define TA_EMIT_EVENTS_EXPERIMENTS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "wire/experiments.h"
#include "wire/write.h"

enum { TA_FIRST_VERSION_WITH_EXPERIMENTS = 23 };

/* The arguments of the event with a number. */
struct ta_own_row {
  atomic_bool known;
  bool plain;   /* every argument is the number itself */
  bool running; /* on a thread that runs a goroutine only */
  uint8_t nargs, experiment;
  int8_t blob;                      /* argument that holds a blob; -1: none */
  uint8_t types[TW_TIMED_ARGS_MAX]; /* enum tw_arg_type */
};
extern struct ta_own_row ta_own_rows[UINT8_MAX + 1];
extern atomic_uint
    ta_own_experiments; /* registered; their numbers are from TW_EXPERIMENT_FIRST on */

/* An event with texts of the moment: a _string is written out here and now, and is not looked up. args: as many as the
 * event has. A _stack is the caller's, from ta_origin on. */
struct ta_own_arg {
  uint64_t number;
  const char *text;
};
void ta_own_put(uint8_t event, const struct ta_own_arg *args);

/* Into a batch of TW_EXPERIMENT_SPECS; false: there is nothing to say. The lock is the caller's. */
bool ta_experiments_write(struct tw_write *w);

/* Around fork(), and while a session begins: what is registered then is either in its first text or comes later. */
void ta_experiments_lock(void);
void ta_experiments_unlock(void);

#endif
