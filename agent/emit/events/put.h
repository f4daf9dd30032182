/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an event into the thread's batch: type, ticks since the last one, arguments, 4 to 6 bytes of most.
 *
 * Every number is a varint; most fit one or two bytes, so room for the longest is asked for before the first is
 * written and no further check is made. Time rises strictly within a thread: where the clock has not moved, the
 * next tick is taken.
 *
 * Threads   in a section, on its thread. An event without a batch is dropped and counted; the flusher gives that
 *           generation up.
 */
#ifndef TA_EMIT_EVENTS_PUT_H
#define TA_EMIT_EVENTS_PUT_H

#include "agent/emit/core/emit.h"
#include "wire/varint.h"

/* A fresh open batch, the full one posted; false: there is none. */
bool ta_next_batch(struct ta_thread *t, struct ta_open_batches *open_batches);
void ta_post_open_batches(struct ta_open_batches *open_batches);
/* Events that were written and are not posted are lost; give: its batches are of this session's pool and go back to
 * it. */
void ta_drop_open_batches(struct ta_thread *t, bool give);
/* The same for an experiment's bytes, with room for so many at least. NULL: there is no batch. */
struct ta_batch *ta_take_experimental(struct ta_thread *t, uint8_t experiment, size_t need_bytes);
void ta_post_bytes(struct ta_thread *t);
/* The process's own experiments, here and now. */
void ta_post_experiments(const struct ta_thread *t);
/* A text that is used once: written out at once; answers its id. */
uint64_t ta_put_text(struct ta_thread *t, const char *text);
uint64_t ta_next_id(struct ta_thread *t);

/* Type, time and arguments of the largest event. */
enum { TA_EVENT_BYTES_MAX = 1 + (1 + TW_TIMED_ARGS_MAX) * TW_VARINT_BYTES_MAX };

static inline unsigned char *ta_put_number(unsigned char *pos, uint64_t value) {
  if (TB_LIKELY(value < 0x80)) {
    *pos = (unsigned char)value;
    return pos + 1;
  }
  return pos + tw_varint_write(pos, value);
}

/* As ta_put(), at a moment that may lie before now: not before the thread's last event. */
static inline __attribute__((always_inline)) void ta_put_at(struct ta_thread *t, uint64_t ticks,
                                                            uint8_t type, unsigned n, uint64_t a,
                                                            uint64_t b, uint64_t c, uint64_t d) {
  struct ta_open_batches *open_batches = t->at;

  if (TA_DEBUG && atomic_load_explicit(&t->busy, memory_order_relaxed) == 0) {
    ta_misuse(t, "an event outside of a section: ta_leave() has ended it");
    return;
  }
  if (TB_UNLIKELY((size_t)(open_batches->end - open_batches->pos) <
                  1 + (n + 1) * (size_t)TW_VARINT_BYTES_MAX) &&
      !ta_next_batch(t, open_batches))
    return;
  unsigned char *pos = open_batches->pos;
  uint64_t since = ticks - t->time;
  if (TB_UNLIKELY((int64_t)since <= 0)) since = 1;
  *pos++ = type;
  pos = ta_put_number(pos, since);
  t->time += since;
  if (n > 0) pos = ta_put_number(pos, a);
  if (n > 1) pos = ta_put_number(pos, b);
  if (n > 2) pos = ta_put_number(pos, c);
  if (n > 3) pos = ta_put_number(pos, d);
  open_batches->pos = pos;
}

/* n of a b c d are its arguments. */
static inline __attribute__((always_inline)) void ta_put(struct ta_thread *t, uint8_t type,
                                                         unsigned n, uint64_t a, uint64_t b,
                                                         uint64_t c, uint64_t d) {
  ta_put_at(t, ta_now(t), type, n, a, b, c, d);
}

/* Events at the same moment as the thread's last event, by the same call: the clock is not read again for it. */
static inline __attribute__((always_inline)) void ta_put_then(struct ta_thread *t, uint8_t type,
                                                              unsigned n, uint64_t a, uint64_t b) {
  ta_put_at(t, t->time + 1, type, n, a, b, 0, 0);
}

static inline uint64_t ta_go_id(const struct ta_go *go) {
  return atomic_load_explicit(&go->id, memory_order_relaxed);
}

static inline uint64_t ta_name_stack(const struct ta_thread *t, const struct ta_go *go) {
  return ta_name_id(atomic_load_explicit(&go->name, memory_order_relaxed), ta_gen(t), TA_AS_STACK);
}

static inline uint64_t ta_string(const struct ta_thread *t, uint32_t name) {
  return ta_name_id(ta_name_known(name), ta_gen(t), TA_AS_STRING);
}

/* As ta_put(), with the stack that calls the emit function for its last argument; the n before it are a b c. from:
 * where that function returns to, TA_CALLER in the function itself. Where stacks are off that is a look at one word. */
#define TA_CALLER __builtin_return_address(0)
uint64_t ta_put_stack(struct ta_thread *t, const void *from); /* its number; 0: stacks are off */
void ta_put_stacked(struct ta_thread *t, uint8_t type, unsigned n, uint64_t a, uint64_t b,
                    uint64_t c, const void *from);

static inline __attribute__((always_inline)) void ta_put_from(struct ta_thread *t, uint8_t type,
                                                              unsigned n, uint64_t a, uint64_t b,
                                                              uint64_t c, const void *from) {
  if (TB_UNLIKELY(ta_emit.stack_depth != 0))
    ta_put_stacked(t, type, n, a, b, c, from);
  else
    ta_put(t, type, n + 1, a, b, c, 0);
}

/* The same of one or two arguments, with the name of a call for its stack where stacks are off; 0: none. */
static inline __attribute__((always_inline)) void ta_put_called(struct ta_thread *t, uint8_t type,
                                                                unsigned n, uint64_t a, uint64_t b,
                                                                uint32_t call, const void *from) {
  if (TB_UNLIKELY(ta_emit.stack_depth != 0)) {
    ta_put_stacked(t, type, n, a, b, 0, from);
    return;
  }
  uint64_t stack = call == 0 ? 0 : ta_name_id(call, ta_gen(t), TA_AS_STACK);
  ta_put(t, type, n + 1, a, n == 1 ? stack : b, stack, 0);
}

enum ta_change {
  TA_CHANGED,
  TA_UNFIT, /* it has none of the statuses asked for */
  TA_LATE,  /* it is in a newer generation than t: leave and enter again */
};

/* From one of the statuses in the bit set `from` to status `to`, taking `steps` sequence numbers, of which *seq is
 * the last. Writes its status in this generation first, if it is not written yet. */
enum ta_change ta_change(struct ta_thread *t, struct ta_go *go, unsigned from, uint8_t to,
                         unsigned steps, uint64_t *seq);
#define TA_FROM(status) (1u << (status))

/* From waiting to woken, TA_GO_KEPT_*, with one sequence number, if it is still the wait that began with that word. The
 * caller has seen it wait in this section (agent/emit/events/waiters.h). */
enum ta_change ta_change_wait(struct ta_thread *t, struct ta_go *go, uint64_t begun, uint64_t *seq);

/* The same for what t itself runs, or has in a system call: no other thread changes that, and its status
 * stands in this generation since t entered it. Answers the last sequence number. */
uint64_t ta_change_own(struct ta_thread *t, uint8_t to, unsigned steps);

/* The status of a goroutine and of t's proc, for the first time in this generation, and what they are in the middle
 * of. */
void ta_put_go_status(struct ta_thread *t, const struct ta_go *go, uint8_t status, bool assists);
void ta_put_proc_status(struct ta_thread *t, uint8_t status);
/* t's proc goes from idle to running, at that time. */
void ta_put_proc_start(struct ta_thread *t, uint64_t ticks);

#endif
