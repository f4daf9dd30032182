/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a thread's batches, event by event.
 *
 * cursor_next() reads the type and time of the thread's next event, and checks that the arguments are
 * whole, so reading them needs no checks. Go's reader looks ahead in the same way: it decodes a
 * thread's next event before it delivers the current one, so a decode error swallows the current one.
 *
 * Hot: about 2 ns an event. The eight bytes after the dt are read at once: if enough of them end a
 * number, the arguments are whole. Near a batch's end, or if eight bytes are not enough, they are
 * checked one by one. Included by order.c alone.
 */
#ifndef TO_ORDER_CURSOR_H
#define TO_ORDER_CURSOR_H

#include "online/order/state.h"
#include "wire/block.h"

/* Longest event on the fast path: type, dt, eight bytes of arguments. */
enum { TO_CURSOR_FAST_BYTES = 1 + 8 + 8 };

const unsigned char *to__read_long(const unsigned char *pos, uint64_t *out);

/* A thread's next event, kept in registers. leave_ahead() stores its time in the thread. */
struct to_ahead {
  const unsigned char *args;
  to_ns time;
  unsigned type;
};

/* Joins the groups of seven bits in the bytes covered by the mask. */
TO_HOT uint64_t join_sevens(uint64_t word, uint64_t mask, bool pext) {
  if (pext) return tw_extract(word, mask & UINT64_C(0x7f7f7f7f7f7f7f7f));
  return tw_join_sevens(word & mask);
}

/* Counts the bytes with the continuation bit set. */
TO_HOT unsigned count_longer(uint64_t word, bool pext) {
  uint64_t goes_on = word & 0x80 * TW_EACH_BYTE;

  return pext ? tw_count(goes_on) : (unsigned)(((goes_on >> 7) * TW_EACH_BYTE) >> 56);
}

/* Reads a number known to be whole; reads up to eight bytes past its start (TO_BATCH_SLACK). */
TO_HOT const unsigned char *read_whole(const unsigned char *pos, uint64_t *out, bool pext) {
  if (TB_LIKELY(*pos < 0x80)) {
    *out = *pos;
    return pos + 1;
  }
  uint64_t word = tw_load8(pos), ends = tw_ends(word);
  unsigned half_ends = (unsigned)ends;
  if (!pext && TB_LIKELY(half_ends != 0)) {
    *out = tw_join_four((unsigned)word & (half_ends ^ (half_ends - 1)));
    return pos + ((size_t)__builtin_ctz(half_ends) >> 3) + 1;
  }
  if (TB_UNLIKELY(ends == 0)) {
    uint64_t value; /* lets *out stay in a register */
    pos = to__read_long(pos, &value);
    *out = value;
    return pos;
  }
  *out = join_sevens(word, ends ^ (ends - 1), pext);
  return pos + ((size_t)__builtin_ctzll(ends) >> 3) + 1;
}

TO_HOT struct to_ahead ahead_of(const struct to_thread *t) {
  return (struct to_ahead){ t->args, t->time, t->type };
}

TO_HOT void leave_ahead(struct to_thread *t, const struct to_ahead *ahead) {
  t->time = ahead->time;
}

TO_HOT to_ns ticks_to_ns(const struct to_order *order, uint64_t ticks) {
  if (TB_LIKELY(ticks < order->ticks_exact_end)) return (to_ns)(ticks * order->ticks_whole);
  return to__ticks_ns(order->ns_per_tick, ticks);
}

/* Reads the event at pos. Returns TB_END if there are no more events, TB_BROKEN if it cannot be read. */
TB_MUST tb_rc to__cursor_next_slow(struct to_order *order, struct to_thread *t,
                                   const unsigned char *pos);

TO_HOT tb_rc cursor_next(struct to_order *order, struct to_thread *t, const unsigned char *pos,
                         struct to_ahead *ahead, bool pext) {
  if (TB_UNLIKELY(pos >= t->near_end)) goto slow;

  size_t type = *pos;
  uint64_t ticks = pos[1];
  const unsigned char *args = pos + 2;
  if (ticks >= 0x80) {
    uint64_t word = tw_load8(pos + 1), ends = tw_ends(word);
    if (TB_UNLIKELY(ends == 0)) goto slow;
    ticks = join_sevens(word, ends ^ (ends - 1), pext);
    args += (size_t)__builtin_ctzll(ends) >> 3;
  }
  if (TB_UNLIKELY((uint8_t)count_longer(tw_load8(args), pext) >= order->longer_end[type]))
    goto slow;
  ahead->type = (unsigned)type;
  t->type = (uint8_t)type;
  ahead->args = t->args = args;
  ahead->time = (to_ns)((uint64_t)ahead->time + (uint64_t)ticks_to_ns(order, ticks));
  if (TB_UNLIKELY(ahead->time == 0))
    t->near_end = t->batch->data; /* counts as unset: handled by the slow path */
  return TB_OK;

slow:;
  leave_ahead(t, ahead);
  tb_rc rc = to__cursor_next_slow(order, t, pos);
  *ahead = ahead_of(t);
  return rc;
}

/* Reads the thread's first event. */
TB_MUST tb_rc to__cursor_begin(struct to_order *order, struct to_thread *t,
                               const struct to_thread_batches *batches);
/* Returns the offset of the thread's next event in the trace. */
uint64_t to__cursor_offset(const struct to_order *order, const struct to_thread *t);

#endif
