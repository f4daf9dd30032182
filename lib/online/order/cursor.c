/* SPDX-License-Identifier: Apache-2.0 */
#include "online/order/cursor.h"

#include "wire/varint.h"

const unsigned char *to__read_long(const unsigned char *pos, uint64_t *out) {
  return pos + tw_varint_read(pos, pos + TW_VARINT_BYTES_MAX, out);
}

static tb_rc refuse(struct to_order *order, const struct to_thread *t, const unsigned char *pos,
                    const char *reason) {
  tb_diag_place(order->diag, order->gen_number, t->id,
                t->batch->offset + (uint64_t)(pos - t->batch->data));
  return tb_fail(order->diag, TB_BROKEN, "%s (event type %u)", reason, *pos);
}

tb_rc to__cursor_next_slow(struct to_order *order, struct to_thread *t, const unsigned char *pos) {
  const unsigned char *start, *args;
  uint64_t ticks, value;

  while (pos == t->end) {
    if (t->batch->next == NULL) return TB_END;
    t->batch = t->batch->next;
    pos = t->batch->data;
    t->end = t->batch->end;
    t->time = 0;
  }
  /* A time of 0 counts as unset, in the middle of a batch, too. */
  if (t->time == 0) t->time = ticks_to_ns(order, t->batch->time);

  start = pos;
  unsigned nargs = order->arg_counts[*pos++];
  if (nargs == TO_NO_TIMED_EVENT) return refuse(order, t, start, "not an event with a time");
  int used = tw_varint_read(pos, t->end, &ticks);
  if (used <= 0) return refuse(order, t, start, "the time cannot be read");
  args = pos += used;
  for (; nargs > 0; nargs--, pos += used)
    if ((used = tw_varint_read(pos, t->end, &value)) <= 0)
      return refuse(order, t, start, "an argument cannot be read");
  t->type = *start;
  t->args = args;
  t->time = (to_ns)((uint64_t)t->time + (uint64_t)ticks_to_ns(order, ticks));
  t->near_end = t->batch->data;
  if (t->time != 0 && t->end - t->near_end >= TO_CURSOR_FAST_BYTES)
    t->near_end = t->end - TO_CURSOR_FAST_BYTES + 1;
  return TB_OK;
}

tb_rc to__cursor_begin(struct to_order *order, struct to_thread *t,
                       const struct to_thread_batches *batches) {
  t->batch = batches->first;
  t->end = t->batch->end;
  t->time = 0;
  return to__cursor_next_slow(order, t, t->batch->data);
}

uint64_t to__cursor_offset(const struct to_order *order, const struct to_thread *t) {
  const unsigned char *pos = t->batch->data, *start = pos;
  uint64_t ignored;

  while (pos < t->args) {
    start = pos;
    unsigned numbers = order->arg_counts[*pos++] + 1u;
    if (pos + tw_varint_read(pos, t->end, &ignored) == t->args) break;
    while (numbers-- > 0) pos += tw_varint_read(pos, t->end, &ignored);
  }
  return t->batch->offset + (uint64_t)(start - t->batch->data);
}
