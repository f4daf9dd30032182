/* SPDX-License-Identifier: Apache-2.0 */
/* Before an entry is written, its maximum size is computed. An entry that may not fit is refused before its first byte is
 * written, so a batch never ends in the middle of an entry. */
#include "wire/write.h"

#include <string.h>

#include "wire/varint.h"

void tw_write_open(struct tw_write *w, unsigned char *room, size_t room_bytes, unsigned version,
                   const struct tw_batch *batch) {
  size_t most = TW_BATCH_BYTES_MAX;
  struct tw_batch head = *batch;

  /* Leaves room for a size of full width, which tw_write_close() fills in. */
  head.len = 0;
  size_t n = tw_batch_write_header(room, &head) - 1 + TW_VARINT_BYTES_MAX;
  if (room_bytes - n < most) most = room_bytes - n;
  *w =
      (struct tw_write){ .room = room,
                         .pos = room + n,
                         .data = room + n,
                         .end = room + n + most,
                         .time = batch->time,
                         .version = version,
                         .holds = batch->experiment == TW_EXPERIMENT_NONE ? TW_BATCH_EVENTS
                                                                          : TW_BATCH_EXPERIMENTAL };
}

size_t tw_write_close(struct tw_write *w) {
  uint64_t len = (uint64_t)(w->pos - w->data);

  for (int i = TW_VARINT_BYTES_MAX; i > 1; i--, len >>= 7)
    w->data[-i] = (unsigned char)(len | 0x80);
  w->data[-1] = (unsigned char)len;
  w->holds = TW_BATCH_END;
  return (size_t)(w->pos - w->room);
}

bool tw_write_is_empty(const struct tw_write *w) {
  return w->pos == w->data;
}

static void put_number(struct tw_write *w, uint64_t value) {
  w->pos += tw_varint_write(w->pos, value);
}

static bool fits(const struct tw_write *w, size_t numbers, size_t bytes) {
  return 1 + numbers * TW_VARINT_BYTES_MAX + bytes <= (size_t)(w->end - w->pos);
}

tb_rc tw_write_event(struct tw_write *w, uint8_t type, uint64_t time, const uint64_t *args) {
  const struct tw_spec *spec = tw_spec(type);

  if (spec->kind != TW_KIND_TIMED && spec->kind != TW_KIND_EXPERIMENT) return TB_BROKEN;
  if (w->holds != TW_BATCH_EVENTS) return TB_BROKEN;
  if (spec->since > w->version) return TB_UNSUPPORTED;
  if (time < w->time) return TB_BROKEN;
  if (!fits(w, spec->nargs + 1u, 0)) return TB_AGAIN;
  *w->pos++ = type;
  put_number(w, time - w->time);
  w->time = time;
  for (unsigned i = 0; i < spec->nargs; i++) put_number(w, args[i]);
  return TB_OK;
}

/* Begins an entry of a table; before the first entry writes the table's own byte. */
static tb_rc begin_entry(struct tw_write *w, enum tw_batch_kind table, uint8_t entry,
                         size_t numbers, size_t bytes) {
  static const uint8_t opening[] = { [TW_BATCH_STRINGS] = TW_EV_STRINGS,
                                     [TW_BATCH_STACKS] = TW_EV_STACKS,
                                     [TW_BATCH_CPU_SAMPLES] = TW_EV_CPU_SAMPLES };
  bool first = tw_write_is_empty(w) && w->holds == TW_BATCH_EVENTS;

  if (!first && w->holds != table) return TB_BROKEN;
  if (!fits(w, numbers, bytes + 1)) return TB_AGAIN;
  if (first) *w->pos++ = opening[table];
  w->holds = table;
  *w->pos++ = entry;
  return TB_OK;
}

tb_rc tw_write_string(struct tw_write *w, uint64_t id, const void *bytes, size_t len) {
  if (len > TW_STRING_BYTES_MAX) return TB_BROKEN;
  TB_TRY(begin_entry(w, TW_BATCH_STRINGS, TW_EV_STRING, 2, len));
  put_number(w, id);
  put_number(w, len);
  if (len > 0) memcpy(w->pos, bytes, len);
  w->pos += len;
  return TB_OK;
}

tb_rc tw_write_stack(struct tw_write *w, uint64_t id, const struct tw_frame *frames,
                     unsigned nframes) {
  if (nframes > TW_STACK_FRAMES_MAX) return TB_BROKEN;
  TB_TRY(begin_entry(w, TW_BATCH_STACKS, TW_EV_STACK, 2 + 4 * (size_t)nframes, 0));
  put_number(w, id);
  put_number(w, nframes);
  for (unsigned i = 0; i < nframes; i++) {
    put_number(w, frames[i].pc);
    put_number(w, frames[i].function);
    put_number(w, frames[i].file);
    put_number(w, frames[i].line);
  }
  return TB_OK;
}

tb_rc tw_write_cpu_sample(struct tw_write *w, const struct tw_cpu_sample *sample) {
  TB_TRY(begin_entry(w, TW_BATCH_CPU_SAMPLES, TW_EV_CPU_SAMPLE, 5, 0));
  put_number(w, sample->time);
  put_number(w, (uint64_t)sample->m);
  put_number(w, (uint64_t)sample->p);
  put_number(w, sample->g < 0 ? 0 : (uint64_t)sample->g);
  put_number(w, sample->stack);
  return TB_OK;
}

tb_rc tw_write_sync(struct tw_write *w, const struct tw_clocks *clocks) {
  if (!tw_write_is_empty(w) || w->holds != TW_BATCH_EVENTS || clocks->time < w->time)
    return TB_BROKEN;
  if (!fits(w, 5, 2)) return TB_AGAIN;
  w->holds = TW_BATCH_SYNC;
  if (w->version >= 25) *w->pos++ = TW_EV_SYNC;
  *w->pos++ = TW_EV_FREQUENCY;
  put_number(w, clocks->frequency);
  if (w->version < 25) return TB_OK;
  *w->pos++ = TW_EV_CLOCK_SNAPSHOT;
  put_number(w, clocks->time - w->time);
  put_number(w, clocks->mono_ns);
  put_number(w, clocks->wall_sec);
  put_number(w, clocks->wall_nsec);
  return TB_OK;
}

tb_rc tw_write_bytes(struct tw_write *w, const void *bytes, size_t len) {
  if (w->holds != TW_BATCH_EXPERIMENTAL) return TB_BROKEN;
  if (len > (size_t)(w->end - w->pos)) return TB_AGAIN;
  if (len > 0) memcpy(w->pos, bytes, len);
  w->pos += len;
  return TB_OK;
}
