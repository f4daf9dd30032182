/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/queues.h"

#include <string.h>

#include "base/grow.h"

enum { ROOM_MIN = 64 };

tb_rc to_queues_init(struct to_queues *q, struct tb_mem *mem, struct to_windows *windows,
                     struct to_stack_table *stacks) {
  *q = (struct to_queues){
    .mem = mem, .windows = windows, .stacks = stacks, .first = TO_QUEUE_NONE
  };
  return to_windows_series(windows, TO_NO_SERIES, &q->parent);
}

void to_queues_fini(struct to_queues *q) {
  if (q->mem != NULL) tb_mem_free(q->mem, q->queue, q->room * sizeof(*q->queue));
}

tb_rc to_queues_grow(struct to_queues *q, uint32_t number) {
  size_t room = q->room < ROOM_MIN ? ROOM_MIN : q->room;
  void *block = q->queue;

  while (room <= number) room *= 2;
  TB_TRY(tb_mem_resize(q->mem, &block, q->room * sizeof(*q->queue), room * sizeof(*q->queue)));
  q->queue = block;
  memset(q->queue + q->room, 0, (room - q->room) * sizeof(*q->queue));
  q->room = room;
  return TB_OK;
}

/* Adds the queue's length to a sum instead of a time: a window's maximum is its longest queue. */
static tb_rc add_length(struct to_queues *q, struct to_queue *queue) {
  if (queue->waiting < 2) return TB_OK;
  if (queue->longest == 0) TB_TRY(to_windows_series(q->windows, q->parent, &queue->longest));
  to_windows_sum(q->windows, queue->longest, 0, queue->waiting, 0, false);
  return TB_OK;
}

static void set_peak(struct to_queue *queue) {
  queue->peak = queue->slot_max < queue->gen_max ? queue->slot_max : queue->gen_max;
}

tb_rc to_queues_rise(struct to_queues *q, struct to_queue *queue) {
  if (queue->slot != q->slot) queue->slot_max = 0;
  queue->slot = q->slot;
  if (!queue->is_listed) {
    queue->is_listed = true;
    queue->next = q->first;
    q->first = (uint32_t)(queue - q->queue);
  }
  bool rises = queue->waiting > queue->slot_max;
  if (rises) queue->slot_max = queue->waiting;
  if (queue->waiting > queue->gen_max) queue->gen_max = queue->waiting;
  set_peak(queue);
  return rises ? add_length(q, queue) : TB_OK;
}

tb_rc to_queues_slot(struct to_queues *q) {
  q->slot++;
  for (uint32_t i = q->first; i != TO_QUEUE_NONE; i = q->queue[i].next) {
    struct to_queue *queue = &q->queue[i];
    queue->slot = q->slot;
    queue->slot_max = queue->waiting;
    set_peak(queue);
    TB_TRY(add_length(q, queue));
  }
  return TB_OK;
}

static void count_moves(struct to_queue *queue, bool is_long) {
  if (queue->waiting > queue->before)
    queue->still = 0;
  else if (queue->still < UINT8_MAX)
    queue->still++;
  queue->moves = is_long && (queue->moves || queue->left);
  queue->left = false;
  queue->before = queue->waiting;
}

static tb_rc end_generation(struct to_queues *q, struct to_queue *queue, to_ns time) {
  bool is_long = queue->gen_max >= TO_CONVOY_LENGTH && (q->convoys >> queue->reason & 1) != 0;
  bool was_convoy = is_long && to_queue_is_convoy(queue);

  if (is_long && queue->generations++ == 0) queue->since = q->generation;
  if (!is_long) queue->generations = 0;
  count_moves(queue, is_long);
  queue->gen_max = queue->waiting;
  set_peak(queue);
  if (!was_convoy) return TB_OK;
  if (queue->convoys == 0) TB_TRY(to_windows_series(q->windows, q->parent, &queue->convoys));
  to_windows_sum(q->windows, queue->convoys, queue->since, time, 0, false);
  return TB_OK;
}

tb_rc to_queues_generation(struct to_queues *q, to_ns time) {
  uint32_t *link = &q->first;

  while (*link != TO_QUEUE_NONE) {
    struct to_queue *queue = &q->queue[*link];
    TB_TRY(end_generation(q, queue, time));
    if (queue->waiting > 0 || queue->generations > 0) {
      link = &queue->next;
    } else { /* its peak is 0: the next goroutine lists it again */
      queue->is_listed = false;
      *link = queue->next;
    }
  }
  q->generation = time;
  return TB_OK;
}

void to_queues_epoch(struct to_queues *q) {
  for (uint32_t i = q->first; i != TO_QUEUE_NONE; i = q->queue[i].next) {
    struct to_queue *queue = &q->queue[i];
    queue->waiting = queue->peak = queue->slot_max = queue->gen_max = queue->generations = 0;
    queue->before = queue->still = 0;
    queue->is_listed = queue->left = queue->moves = false;
  }
  q->first = TO_QUEUE_NONE;
}
