/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for whom now: each goroutine that waits, the goroutine that it waits for, and so on to one that does not wait, or to a
 * cycle.
 *
 *     EXACT    the trace names the lock, and the thread that holds it
 *     OWN      inferred: that one ended the goroutine's own last wait at this stack
 *     OTHERS   guessed: that one ended the last wait of some goroutine at this stack
 *
 * A cycle is a suspected deadlock if nothing in it can be expected to move:
 *   - each of its waits is for a lock or a send, and each link is EXACT or OWN;
 *   - of an OWN link, none of the goroutines that ended such waits before can do so now: each has ended, or waits in a chain that leads
 *     into this very cycle;
 *   - all have waited since before quiet_since. Where more than two goroutines ended such waits, only the last two are known, so
 *     since before long_since.
 *
 * Memory    the arena's: 28 bytes for each goroutine of the most that lived at once, and what lock_holders.h says.
 * Time      goroutines that wait are looked at once each, however long their chains are.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_EXPLAIN_CHAINS_H
#define TO_EXPLAIN_CHAINS_H

#include "base/arena.h"
#include "online/spans/spans.h"
#include "online/spans/stacks/idle.h"
#include "online/spans/sums.h"

enum to_link { TO_LINK_NONE, TO_LINK_EXACT, TO_LINK_OWN, TO_LINK_OTHERS, TO_LINKS };
const char *to_link_name(enum to_link link); /* "inferred" */

/* What the goroutine at the end of a chain does. */
enum to_chain_end {
  TO_CHAIN_RUNS,
  TO_CHAIN_RUNNABLE,
  TO_CHAIN_CALL,
  TO_CHAIN_IDLE,     /* it waits for work */
  TO_CHAIN_NO_WAKER, /* it waits, and no goroutine is known to end that: network, timer, runtime, or it never waited there before */
  TO_CHAIN_GONE,     /* it waits for one that has ended */
  TO_CHAIN_CYCLE,
  TO_CHAIN_ENDS
};
const char *to_chain_end_name(enum to_chain_end end); /* "system call" */

struct to_chain {  /* of a goroutine that waits, by slot; length 0: it was not asked for */
  uint32_t next;   /* slot of the goroutine that it waits for; 0: none */
  uint32_t length; /* waits from here to the end, a cycle's once */
  uint32_t last;   /* slot of the goroutine at the end; of a cycle: one in it */
  uint32_t stack;  /* its number */
  uint32_t path;   /* the walk that it was met in */
  uint32_t cycle;  /* number of the cycle that it leads into, from 1; 0: none, or it is not kept */
  uint8_t link;    /* enum to_link: to next */
  uint8_t end;     /* enum to_chain_end */
};

struct to_cycle {
  uint32_t first; /* slot: of its goroutines the one with the smallest id */
  uint32_t length;
  to_ns newest; /* begin of its last wait */
  bool is_suspect;
};

enum { TO_CYCLES_MAX = 64 };

struct to_chains {
  struct to_spans *spans;
  const struct to_generation *gen;
  struct to_chain *of_slot;
  size_t slots;
  struct to_cycle *cycle; /* at most TO_CYCLES_MAX of all */
  size_t cycles, cycles_total;
  const struct to_held_lock *held;
  size_t n_held;
};

struct to_chains_ask {
  struct to_spans *spans;
  const struct to_generation *gen; /* whose tables spans in the making name; NULL: between two */
  struct to_idle *idle;
  uint64_t reasons; /* bits of enum to_reason: these waits have wakers; they are reasons of the spans' queues */
  uint64_t begins;               /* of them: chains begin with these waits, */
  to_ns longer_than;             /* if they are longer, and not idle */
  to_ns quiet_since, long_since; /* INT64_MIN: no cycle is a suspect */
};

/* out: zeroed. Its arrays are the arena's. */
TB_MUST tb_rc to_chains_find(const struct to_chains_ask *ask, struct tb_arena *arena,
                             struct to_chains *out);

/* The goroutines of the chain that begins in this slot, in words: its first ones and the last one. The arena's. */
TB_MUST tb_rc to_chain_words(const struct to_chains *chains, const struct to_span_sums *sums,
                             uint32_t slot, struct tb_arena *arena, struct to_string *out);

#endif
