/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines: each thread is one, each fiber is one, and a thread runs one of them at a time.
 *
 * A goroutine's activity stands in one word: since which generation, its sequence number in it, its status, and the
 * status it had when the generation found it. Every change is one compare-and-swap, so that of several threads only one
 * makes it, and the first one in a generation writes the status, too (requirement E2). A thread that
 * holds an old generation and finds the word in a newer one has come too late and must enter again.
 *
 * The flusher writes the status of goroutines that had no event in a generation. It finds what they did in the word; if
 * the next generation has taken the word away already, in its `entry`. A running goroutine's status comes with its
 * thread (agent/emit/generation/generation.c).
 *
 * Memory    one table that grows, made once and kept; 400 bytes a goroutine that there is at one time.
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
  TA_REGIONS_MAX = 32, /* open at one time that are written */
  TA_GO_SEQ_MAX = (1 << 24) - 1,
};

/* Beyond enum tw_go_status: ended, its place not free before the generation is over; and waiting or woken while a
 * thread stands by it, so that no other may start it. */
enum ta_go_status {
  TA_GO_DEAD = TW_GO_STATUSES,
  TA_GO_KEPT_WAITING,
  TA_GO_KEPT_RUNNABLE,
};

static inline uint8_t ta_wire_status(uint8_t status) {
  if (status == TA_GO_KEPT_WAITING) return TW_GO_WAITING;
  return status == TA_GO_KEPT_RUNNABLE ? TW_GO_RUNNABLE : status;
}

/* Of a stack; high is 0 where they are not known. */
struct ta_bounds {
  uintptr_t low, high;
};

struct ta_go {
  _Atomic uint64_t word;
  _Atomic uint64_t id; /* on the wire; never used twice */
  _Atomic uint32_t name;
  uint32_t next_free;
  uint64_t held;    /* what its thread's `now` says of it (agent/emit/core/emit.h) */
  uint32_t regions; /* open, those beyond TA_REGIONS_MAX too */
  uint16_t region_name[TA_REGIONS_MAX];
  uint64_t region_task[TA_REGIONS_MAX];
  struct ta_bounds stack; /* of a fiber */
} __attribute__((aligned(64)));

/* The word, taken apart. */
struct ta_doing {
  uint32_t gen; /* 31 bits */
  uint32_t seq;
  uint8_t status, entry; /* enum tw_go_status, enum ta_go_status */
  bool skipped;          /* its status was not written in the generation before this one */
  bool assists,
      entry_assists; /* it helps the collector to mark: now, and when the generation found it */
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

/* The word as it is some steps on, with another status, in the same generation. */
static inline uint64_t ta_doing_step(uint64_t word, uint8_t status, unsigned steps) {
  return (word & ~UINT64_C(7)) + ((uint64_t)steps << 9 | status);
}

/* The same goroutine as gen finds it. */
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

/* For max goroutines, at most TA_GOES_MAX; the first call of a process decides. */
TB_MUST tb_rc ta_goes_make(uint32_t max);
void ta_goes_reset(void);  /* all free: between two sessions */
void ta_goes_forget(void); /* in a forked child */
/* Under the session's lock. take answers NULL when all are in use; the word is still 0. */
struct ta_go *ta_goes_take(uint32_t name);
uint64_t ta_goes_number(void); /* of a goroutine that has no place here, also under the lock */
/* Once for each id: a thread that was left behind and the flusher may both give back what that thread ended. */
void ta_goes_give(struct ta_go *go, uint64_t id);
struct ta_go *ta_goes_at(uint32_t place); /* NULL: it was never used */
bool ta_goes_any(void);                   /* some have been used in this session */
/* The first place from `from` on that is taken, or UINT32_MAX. A walk costs a bit for each place that was ever used. */
uint32_t ta_goes_next(uint32_t from);

#endif
