/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of goroutines that wait at the same stack at once, for `reasons`.
 *
 * A goroutine is in its stack's queue from the event that blocks it to the one that wakes it; spans.c counts. One that
 * already waited when the trace began is in no queue: its reason is unknown.
 *
 * Memory    from mem: 56 bytes for each stack number of the stack table, and a series for each queue of two or more.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the goroutine is in no queue.
 */
#ifndef TO_SPANS_QUEUES_H
#define TO_SPANS_QUEUES_H

#include "online/spans/spans.h"
#include "online/spans/stacks/table.h"
#include "online/window/window.h"

#define TO_QUEUE_NONE UINT32_MAX
enum { TO_CONVOY_LENGTH = 3, TO_CONVOY_GENERATIONS = 3, TO_CONVOY_STUCK = 10 };

struct to_queue {
  uint32_t waiting;     /* now */
  uint32_t peak;        /* the smaller one of the next two */
  uint32_t slot_max;    /* in the open slot of the windows */
  uint32_t gen_max;     /* in the current generation */
  uint32_t longest;     /* series whose maximum is the longest queue; 0: never two at once */
  uint32_t convoys;     /* series of past convoys; 0: none */
  uint32_t generations; /* whole generations in a row with a queue of TO_CONVOY_LENGTH or more */
  uint8_t reason;       /* enum to_reason of the newest wait */
  bool left;            /* a goroutine left in this generation */
  bool moves;           /* a goroutine left in one of these generations */
  uint8_t still;        /* generations in a row, up to now, in which it did not grow; at most 255 */
  to_ns since;          /* begin of the first of these generations */
  uint32_t slot;        /* number of the slot that slot_max belongs to */
  uint32_t next;        /* if is_listed: number of the next one */
  bool is_listed;  /* goroutines waited in this generation, or the one before had a long queue */
  uint32_t before; /* waiting when this generation began */
};

struct to_queues {
  struct tb_mem *mem;
  struct to_windows *windows;
  struct to_stack_table *stacks;
  uint64_t reasons;       /* bits of enum to_reason that are counted */
  uint64_t convoys;       /* bits of reasons that can be a convoy */
  uint32_t parent;        /* series */
  struct to_queue *queue; /* by number of the stack */
  size_t room;
  uint32_t first;   /* first listed queue; or TO_QUEUE_NONE */
  uint32_t slot;    /* number of the open slot of the windows */
  to_ns generation; /* begin of the current one */
};
_Static_assert(TO_REASONS_MAX <= 64, "a bit for each reason");

TB_MUST tb_rc to_queues_init(struct to_queues *q, struct tb_mem *mem, struct to_windows *windows,
                             struct to_stack_table *stacks);
void to_queues_fini(struct to_queues *q); /* accepts a zeroed one */

TB_MUST tb_rc to_queues_grow(struct to_queues *q, uint32_t number);
TB_MUST tb_rc to_queues_rise(struct to_queues *q, struct to_queue *queue);

static inline bool to_queues_want(const struct to_queues *q, unsigned reason) {
  return q != NULL && (q->reasons >> reason & 1) != 0;
}
/* Adds a goroutine that blocks at the stack of this number. */
TB_MUST static inline tb_rc to_queues_enter(struct to_queues *q, uint32_t number, uint8_t reason) {
  if (TB_UNLIKELY(number >= q->room)) TB_TRY(to_queues_grow(q, number));
  struct to_queue *queue = &q->queue[number];
  queue->reason = reason;
  return ++queue->waiting > queue->peak ? to_queues_rise(q, queue) : TB_OK;
}
static inline void to_queues_leave(struct to_queues *q, uint32_t number) {
  if (number >= q->room || q->queue[number].waiting == 0) return;
  q->queue[number].waiting--;
  q->queue[number].left = true;
}

TB_MUST tb_rc to_queues_slot(struct to_queues *q); /* a slot of the windows begins */
TB_MUST tb_rc to_queues_generation(struct to_queues *q, to_ns time); /* a generation begins */
void to_queues_epoch(struct to_queues *q);                           /* all queues become empty */

/* Returns true if the queue is a convoy now: long in TO_CONVOY_GENERATIONS, the current one included, and either goroutines leave it
 * or it is stuck. A queue that nobody leaves and that grows may be a leak. */
static inline bool to_queue_is_convoy(const struct to_queue *queue) {
  bool is_long = queue->gen_max >= TO_CONVOY_LENGTH;

  return is_long && queue->generations + 1 >= TO_CONVOY_GENERATIONS &&
         (queue->moves || queue->left || queue->still >= TO_CONVOY_STUCK);
}

#endif
