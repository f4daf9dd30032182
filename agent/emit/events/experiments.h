/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments registered in this process, and their specs, the text that describes them in the trace.
 *
 * Numbers are never reused, so they hold in every session. Each generation contains the specs before the first event that
 * needs them: the flusher writes them first in every generation, and a registration within one posts them at once.
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
  bool running; /* may be emitted only by a thread that runs a goroutine */
  uint8_t nargs, experiment;
  int8_t blob;                      /* argument that holds a blob; -1: none */
  uint8_t types[TW_TIMED_ARGS_MAX]; /* enum tw_arg_type */
};
extern struct ta_own_row ta_own_rows[UINT8_MAX + 1];
extern atomic_uint ta_own_experiments; /* registered, with numbers from TW_EXPERIMENT_FIRST on */

/* Emits an event whose _string arguments are texts, written at once without a look-up. args: as many as the event has. A
 * _stack is the caller's, from ta_origin on. */
struct ta_own_arg {
  uint64_t number;
  const char *text;
};
void ta_own_put(uint8_t event, const struct ta_own_arg *args);

/* Writes the specs into a batch of TW_EXPERIMENT_SPECS. Returns false if there are none. The caller holds the lock. */
bool ta_experiments_write(struct tw_write *w);

/* Held around fork(), and while a session begins: a concurrent registration is then in the session's first specs or posts
 * its own. */
void ta_experiments_lock(void);
void ta_experiments_unlock(void);

#endif
