/* SPDX-License-Identifier: Apache-2.0 */
/* The flusher: the thread that ends generations. It sleeps until a batch is full or a generation's end is due.
 *
 * While batches are posted the flusher collects them every 10 ms, and is woken earlier only if half of the pool is in use:
 * waking a thread is a system call, which the program's threads should seldom make.
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
  struct tb_keeper keeper; /* makes an internal error end the session's trace, not the host */
  uint64_t period_ns, bytes_max;
  uint64_t began_ns;      /* start of this generation */
  uint64_t paused_ns;     /* since when a pause delays its end; 0: none does */
  bool cut;               /* the generation must end at once */
  uint64_t looked_ns;     /* last check whether the host's threads have ended */
  bool (*deserted)(void); /* called when they have, until it returns true. NULL: no check */
  unsigned deserted_in_vain;
  atomic_bool stopping;
  pthread_mutex_t lock; /* guards the fields below */
  pthread_cond_t generation_ended;
  uint64_t asked, answered; /* generations that callers wait for */
  bool ended;
  bool abandoned; /* stop() has timed out */
};

void ta_flusher_init(struct ta_flusher *r, uint64_t period_ns, uint64_t bytes_max);
void ta_flusher_fini(struct ta_flusher *r);

/* Returns how long to wait for a thread that is writing an event: ten periods, at least two seconds. */
uint64_t ta_flusher_patience(const struct ta_flusher *r);

/* Ends one generation after the other until stopped, then the last one. */
void ta_flusher_run(struct ta_flusher *r);

/* Call before threads may write, if run() is not called at once: they then report in ta_emit.due when it is time. */
void ta_flusher_wait_for_run(void);
/* Ends the last generation; no other thread may be in run(). */
void ta_flusher_end(struct ta_flusher *r);

/* Requests the end of a generation; returns the number to pass to ta_flusher_wait(). */
uint64_t ta_flusher_ask(struct ta_flusher *r);
/* Makes run() end. Up to a fifth of the time until until_ns is spent on functions' names. */
void ta_flusher_stop(struct ta_flusher *r, uint64_t until_ns);

/* Request a snap, or only the end of a generation; also from signal handlers. The last of several pending snaps counts. */
void ta_flusher_snap(uint64_t last_ms);
void ta_flusher_cut(void);
/* Waits for generation n or, for 0, for run() to end. Returns false if until_ns passed first; UINT64_MAX: no deadline. */
bool ta_flusher_wait(struct ta_flusher *r, uint64_t n, uint64_t until_ns);
/* Call if the wait after stop() timed out: run() then watches for the host's end. Returns false if run() has ended. */
bool ta_flusher_abandon(struct ta_flusher *r);

#endif
