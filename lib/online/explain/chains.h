/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for whom now: from each waiting goroutine to the goroutine that it waits for, and so on to one that does not
 * wait, or to a cycle. A link is
 *
 *     EXACT    the trace names the lock, and the thread that holds it
 *     OWN      inferred: the next goroutine ended this goroutine's own last wait at this stack
 *     OTHERS   guessed: the next goroutine ended some goroutine's last wait at this stack
 *
 * A cycle is a suspected deadlock if all of these hold:
 *   - each of its waits is for a lock or a send, and each link is EXACT or OWN;
 *   - none of the goroutines that ended an OWN link's waits before can do so now: each has ended, or waits in a chain that
 *     leads into this cycle;
 *   - all waits began before quiet_since. Only the last two goroutines that ended such waits are known. If there were more,
 *     all waits must have begun before long_since.
 *
 * Memory    the arena's: 28 bytes for each slot of spans, and what lock_holders.h says.
 * Time      each waiting goroutine is visited once, no matter how long the chains are.
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

/* State of the goroutine at the end of a chain. */
enum to_chain_end {
  TO_CHAIN_RUNS,
  TO_CHAIN_RUNNABLE,
  TO_CHAIN_CALL,
  TO_CHAIN_IDLE, /* it waits for work */
  TO_CHAIN_NO_WAKER, /* it is unknown who will end its wait: network, timer, runtime, or its first wait there */
  TO_CHAIN_GONE, /* it waits for a goroutine that has ended */
  TO_CHAIN_CYCLE,
  TO_CHAIN_ENDS
};
const char *to_chain_end_name(enum to_chain_end end); /* "system call" */

struct to_chain {  /* for a waiting goroutine, by slot; length 0: not asked for */
  uint32_t next;   /* slot of the goroutine that it waits for; 0: unknown */
  uint32_t length; /* waits from here to the end; a cycle counts once */
  uint32_t last;   /* slot of the goroutine at the end; of a cycle: one in it */
  uint32_t stack;  /* number of the stack where it waits */
  uint32_t path;   /* number of the walk that found it */
  uint32_t cycle;  /* 1 + index of the cycle that it leads into; 0: none, or above the limit */
  uint8_t link;    /* enum to_link: how next is known */
  uint8_t end;     /* enum to_chain_end */
};

struct to_cycle {
  uint32_t first; /* slot of the goroutine with the smallest id */
  uint32_t length;
  to_ns newest; /* begin of its newest wait */
  bool is_suspect;
};

enum { TO_CYCLES_MAX = 64 };

struct to_chains {
  struct to_spans *spans;
  const struct to_generation *gen;
  struct to_chain *of_slot;
  size_t slots;
  struct to_cycle *cycle; /* the first TO_CYCLES_MAX */
  size_t cycles, cycles_total;
  const struct to_held_lock *held;
  size_t n_held;
};

struct to_chains_ask {
  struct to_spans *spans;
  const struct to_generation *gen; /* the one being read; NULL: between two */
  struct to_idle *idle;
  uint64_t reasons;  /* bits of enum to_reason, as in the spans' queues: these waits have wakers */
  uint64_t begins;   /* bits of reasons: chains begin with these waits, if they are */
  to_ns longer_than; /* longer than this, and not idle */
  to_ns quiet_since, long_since; /* INT64_MIN: no cycle is a suspect */
};

/* Finds all chains and cycles. out must be zeroed; its arrays are allocated from arena. */
TB_MUST tb_rc to_chains_find(const struct to_chains_ask *ask, struct tb_arena *arena,
                             struct to_chains *out);

/* Describes the chain that begins in this slot: its first goroutines and the last one. Allocates from arena. */
TB_MUST tb_rc to_chain_words(const struct to_chains *chains, const struct to_span_sums *sums,
                             uint32_t slot, struct tb_arena *arena, struct to_string *out);

#endif
