/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an event into the thread's batch: type, ticks since the last one, arguments; most take 4 to 6 bytes.
 *
 * Every number is a varint; room for the longest ones is checked once, before the first is written. Time rises strictly
 * within a thread: if the clock has not advanced, the next tick is used.
 *
 * Threads   in a section, on its thread. An event without a batch is dropped and counted; the flusher gives that
 *           generation up.
 */
#ifndef TA_EMIT_EVENTS_PUT_H
#define TA_EMIT_EVENTS_PUT_H

#include "agent/emit/core/emit.h"
#include "wire/varint.h"

/* Posts the full batch and opens a new one; returns false if none is free. */
bool ta_next_batch(struct ta_thread *t, struct ta_open_batches *open_batches);
void ta_post_open_batches(struct ta_open_batches *open_batches);
/* Drops events that are not posted. give: the batches belong to this session's pool and are returned to it. */
void ta_drop_open_batches(struct ta_thread *t, bool give);
/* Takes a batch for an experiment's bytes, with room for need_bytes. Returns NULL if none is free. */
struct ta_batch *ta_take_experimental(struct ta_thread *t, uint8_t experiment, size_t need_bytes);
void ta_post_bytes(struct ta_thread *t);
/* Posts a batch with the specs of all experiments now, without waiting for the next generation. */
void ta_post_experiments(const struct ta_thread *t);
/* Writes a text that is used once, and returns its id. */
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

/* As ta_put(), at a given time, which may be past, but not before the thread's last event. */
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

/* Writes an event now; the first n of a b c d are its arguments. */
static inline __attribute__((always_inline)) void ta_put(struct ta_thread *t, uint8_t type,
                                                         unsigned n, uint64_t a, uint64_t b,
                                                         uint64_t c, uint64_t d) {
  ta_put_at(t, ta_now(t), type, n, a, b, c, d);
}

/* Writes a further event of the same call, one tick after the last: the clock is not read again. */
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

/* As ta_put(), with the stack of the emit function's caller as last argument; the n before it are a b c. from: the emit
 * function's return address, TA_CALLER in that function itself. If stacks are off, this costs reading one word. */
#define TA_CALLER __builtin_return_address(0)
uint64_t ta_put_stack(struct ta_thread *t,
                      const void *from); /* returns its id; 0: stacks are off */
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

/* As ta_put_from() for one or two arguments; if stacks are off, the name of a call is the stack; 0: none. */
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
  TA_UNFIT, /* the goroutine has none of the statuses in `from` */
  TA_LATE,  /* the goroutine is in a newer generation than t: leave and enter again */
};

/* Changes from a status in the bit set `from` to status `to` and takes `steps` sequence numbers, of which *seq is the
 * last. First writes the goroutine's status in this generation, if that is not written yet. */
enum ta_change ta_change(struct ta_thread *t, struct ta_go *go, unsigned from, uint8_t to,
                         unsigned steps, uint64_t *seq);
#define TA_FROM(status) (1u << (status))

/* Changes from waiting to woken, TA_GO_KEPT_*, with one sequence number, if this is still the wait that began with the
 * word `begun`. The caller has seen the goroutine wait in this section (agent/emit/events/waiters.h). */
enum ta_change ta_change_wait(struct ta_thread *t, struct ta_go *go, uint64_t begun, uint64_t *seq);

/* Changes the goroutine that t runs or has in a system call: no other thread changes that, and its status was written
 * when t entered this generation. Returns the last sequence number. */
uint64_t ta_change_own(struct ta_thread *t, uint8_t to, unsigned steps);

/* Write the status of a goroutine, and of t's proc, for the first time in this generation, with its open operations. */
void ta_put_go_status(struct ta_thread *t, const struct ta_go *go, uint8_t status, bool assists);
void ta_put_proc_status(struct ta_thread *t, uint8_t status);
/* Starts t's proc at that time. */
void ta_put_proc_start(struct ta_thread *t, uint64_t ticks);

#endif
