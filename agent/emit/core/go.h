/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines: each thread is one, each fiber is one, and a thread runs one of them at a time.
 *
 * A goroutine's activity is one word: the generation of its last change, its sequence number in it, its status, and its
 * status at the start of that generation. Every change is one compare-and-swap, so that only one of several threads
 * makes it, and the first change in a generation also writes the status (requirement E2). A thread in an old generation
 * that finds the word in a newer one is too late and must enter again.
 *
 * The flusher writes the status of goroutines that had no event in a generation. It reads the status from the word, or
 * from the word's `entry` if the goroutine already changed in the next generation. A running goroutine's status is
 * written with its thread's (agent/emit/generation/generation.c).
 *
 * Memory    one table that grows, made once and kept; 400 bytes for each goroutine that exists at the same time.
 * Threads   take and give under the session's lock, regions on the thread that runs it; the word: any.
 */
#ifndef TA_EMIT_CORE_GO_H
#define TA_EMIT_CORE_GO_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/result.h"
#include "wire/spec.h"

enum {
  TA_GOES_LOG2 = 18,
  TA_GOES_MAX = 1 << TA_GOES_LOG2,
  TA_REGIONS_MAX = 32, /* nested regions; deeper ones are not written */
  TA_GO_SEQ_MAX = (1 << 24) - 1,
};

/* Statuses beyond enum tw_go_status: ended, its place in use until the generation is over; and waiting or woken while
 * its thread keeps it, so that no other thread may start it. */
enum ta_go_status {
  TA_GO_DEAD = TW_GO_STATUSES,
  TA_GO_KEPT_WAITING,
  TA_GO_KEPT_RUNNABLE,
};

static inline uint8_t ta_wire_status(uint8_t status) {
  if (status == TA_GO_KEPT_WAITING) return TW_GO_WAITING;
  return status == TA_GO_KEPT_RUNNABLE ? TW_GO_RUNNABLE : status;
}

/* Bounds of a stack; high is 0 if unknown. */
struct ta_bounds {
  uintptr_t low, high;
};

struct ta_go {
  _Atomic uint64_t word;
  _Atomic uint64_t id; /* on the wire; never used twice */
  _Atomic uint32_t name;
  uint32_t next_free;
  uint64_t held;    /* its part of its thread's `now` (agent/emit/core/emit.h) */
  uint32_t regions; /* open, including those beyond TA_REGIONS_MAX */
  uint16_t region_name[TA_REGIONS_MAX];
  uint64_t region_task[TA_REGIONS_MAX];
  struct ta_bounds stack; /* of a fiber */
} __attribute__((aligned(64)));

/* The word, decoded. */
struct ta_doing {
  uint32_t gen; /* 31 bits */
  uint32_t seq;
  uint8_t status, entry; /* enum tw_go_status, enum ta_go_status */
  bool skipped;          /* its status was not written in the generation before this one */
  bool assists,
      entry_assists; /* it helps the garbage collector to mark: now, at the generation's start */
};

static inline uint64_t ta_doing_word(struct ta_doing d) {
  return (uint64_t)d.gen << 33 | (uint64_t)d.seq << 9 | (uint64_t)d.entry_assists << 8 |
         (uint64_t)d.assists << 7 | (uint64_t)d.skipped << 6 | (uint64_t)d.entry << 3 | d.status;
}

static inline struct ta_doing ta_doing(uint64_t word) {
  return (struct ta_doing){ .gen = (uint32_t)(word >> 33),
                            .seq = (uint32_t)(word >> 9) & TA_GO_SEQ_MAX,
                            .entry_assists = (word >> 8 & 1) != 0,
                            .assists = (word >> 7 & 1) != 0,
                            .skipped = (word >> 6 & 1) != 0,
                            .entry = word >> 3 & 7,
                            .status = word & 7 };
}

/* The word after some steps, with another status, in the same generation. */
static inline uint64_t ta_doing_step(uint64_t word, uint8_t status, unsigned steps) {
  return (word & ~UINT64_C(7)) + ((uint64_t)steps << 9 | status);
}

/* The goroutine's state at the start of gen, or as it is if it already changed in gen. */
static inline struct ta_doing ta_doing_in(struct ta_doing d, uint32_t gen) {
  if (d.gen == gen) return d;
  return (struct ta_doing){ .gen = gen,
                            .status = d.status,
                            .entry = d.status,
                            .skipped = d.gen + 1 != gen,
                            .assists = d.assists,
                            .entry_assists = d.assists };
}

extern struct ta_go *ta_goes; /* NULL before the first session */

/* Makes the table for max goroutines, at most TA_GOES_MAX; only a process's first call sets max. */
TB_MUST tb_rc ta_goes_make(uint32_t max);
void ta_goes_reset(void);  /* frees all places; call it between two sessions */
void ta_goes_forget(void); /* in a forked child */
/* Under the session's lock. take returns NULL if all are in use; a new goroutine's word is 0. */
struct ta_go *ta_goes_acquire(uint32_t name);
uint64_t ta_goes_number(void); /* id for a goroutine without a place, also under the lock */
/* Frees only once per id: if a thread was left behind, both the thread and the flusher may free the goroutine. */
void ta_goes_release(struct ta_go *go, uint64_t id);
struct ta_go *ta_goes_at(uint32_t place); /* NULL: it was never used */
bool ta_goes_any(void);                   /* some were used in this session */
/* The first place from `from` on that is taken, or UINT32_MAX. A walk costs a bit for each place that was ever used. */
uint32_t ta_goes_next(uint32_t from);

#endif
