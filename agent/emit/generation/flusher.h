/* SPDX-License-Identifier: Apache-2.0 */
/* When generations end: the thread that sleeps until a batch is full or a generation is due.
 *
 * While batches come it looks every 10 ms, and is woken earlier only when half of them are taken: waking a
 * thread is a system call, which the program's threads should make seldom.
 *
 * Threads   run() on one; the rest from any.
 */
#ifndef TA_EMIT_GENERATION_FLUSHER_H
#define TA_EMIT_GENERATION_FLUSHER_H

#include <pthread.h>

#include "agent/emit/generation/generation.h"
#include "base/check.h"

enum { TA_PERIOD_MS_MIN = 50 };

struct ta_flusher {
  struct ta_generation generation;
  struct tb_keeper keeper; /* a mistake of ours ends the session's trace, not the host */
  uint64_t period_ns, bytes_max;
  uint64_t began_ns,
      paused_ns; /* this generation, and since when its end is put off; 0: it is not */
  bool cut;      /* it is to end at once */
  uint64_t looked_ns;      /* last, whether the host has left */
  bool (*deserted)(void);  /* it has; called until it answers true. NULL: nobody looks */
  unsigned deserted_in_vain;
  atomic_bool stopping;
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t generation_ended;
  uint64_t asked, answered; /* generations that callers wait for */
  bool ended;
  bool abandoned; /* whoever stopped it waits no longer */
};

void ta_flusher_init(struct ta_flusher *r, uint64_t period_ns, uint64_t bytes_max);
void ta_flusher_fini(struct ta_flusher *r);

/* For a thread in the middle of an event: ten periods, two seconds at least. */
uint64_t ta_flusher_patience(const struct ta_flusher *r);

/* Ends one generation after the other until stopped, then the last one. flusher is open. */
void ta_flusher_run(struct ta_flusher *r);

/* Before threads may write: there is no flusher yet, and may be none for long. */
void ta_flusher_wait_for_run(void);
/* Ends the last generation, on a thread that has no run() beside it. */
void ta_flusher_end(struct ta_flusher *r);

/* Asks for the end of a generation; the answer is what to wait for. */
uint64_t ta_flusher_ask(struct ta_flusher *r);
void ta_flusher_stop(struct ta_flusher *r, uint64_t until_ns); /* a fifth of the time is for functions' names */

/* Of the session there is, from any thread and from signal handlers: asks for a snap, or only for the end of a
 * generation. Of several snaps at a time the last is meant. */
void ta_flusher_snap(uint64_t last_ms);
void ta_flusher_cut(void);
/* Until that generation is over or, for 0, run() has ended; false: the deadline passed first. UINT64_MAX: for ever. */
bool ta_flusher_wait(struct ta_flusher *r, uint64_t n, uint64_t until_ns);
/* After stop(), and a wait in vain: run() goes on to look for the host until the next stop(). False: it has ended by now. */
bool ta_flusher_abandon(struct ta_flusher *r);

#endif
