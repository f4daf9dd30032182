/* SPDX-License-Identifier: Apache-2.0 */
/* Writes batches: thread events with their time differences, and the tables of a generation.
 *
 *   struct tw_write w;
 *   tw_write_open(&w, room, sizeof room, version, &(struct tw_batch){ .gen = 1, .thread = 7, .time = now });
 *   while (more) {
 *     rc = tw_write_event(&w, TW_EV_GO_START, now, (uint64_t[]){ g, seq });
 *     if (rc == TB_AGAIN) ship(room, tw_write_close(&w)), open the next;
 *   }
 *   ship(room, tw_write_close(&w));
 *
 * The result is well formed (lengths, kinds, version, argument counts, order of time). The caller is responsible for the
 * content: statuses, sequence numbers, and ids that exist.
 *
 * Memory    writes into the caller's room only: TW_WRITE_ROOM for a batch of the largest size.
 * Errors    TB_AGAIN: it does not fit into this batch, nothing was written. TB_UNSUPPORTED: this version has no such event.
 *           TB_BROKEN: not allowed in a trace (a string or stack that is too long, an event of another kind, a time before the
 *           last one).
 */
#ifndef TW_WRITE_H
#define TW_WRITE_H

#include "wire/sections.h"

enum { TW_WRITE_ROOM = TW_BATCH_BYTES_MAX + TW_BATCH_HEADER_BYTES_MAX };

struct tw_write {
  unsigned char *room, *pos, *end;
  unsigned char *data; /* begin of the batch's content, after its header */
  uint64_t time;       /* time of the last event, in raw ticks */
  unsigned version;
  enum tw_batch_kind holds; /* EVENTS until a table's first entry */
};

/* Begins a batch with batch's generation, thread, time and experiment. room has at least
 * TW_BATCH_HEADER_BYTES_MAX + 1 bytes. */
void tw_write_open(struct tw_write *w, unsigned char *room, size_t room_bytes, unsigned version,
                   const struct tw_batch *batch);
/* Fills in the batch's size, padded to its full width as Go's runtime writes it. Returns the number of bytes of the batch in
 * room, with its header. Until w is opened again, further writes return TB_BROKEN. */
size_t tw_write_close(struct tw_write *w);
bool tw_write_is_empty(const struct tw_write *w);

/* Writes a timed event, with as many args as its row in wire/events.def has. time must not be before the last event's. */
TB_MUST tb_rc tw_write_event(struct tw_write *w, uint8_t type, uint64_t time, const uint64_t *args);

/* Tables. The first entry of a batch also writes the byte with the table's kind, so a batch has entries of one kind only. */
TB_MUST tb_rc tw_write_string(struct tw_write *w, uint64_t id, const void *bytes, size_t len);
TB_MUST tb_rc tw_write_stack(struct tw_write *w, uint64_t id, const struct tw_frame *frames,
                             unsigned nframes);
TB_MUST tb_rc tw_write_cpu_sample(struct tw_write *w, const struct tw_cpu_sample *sample);

/* Content of a generation's only sync batch: ticks per second and, from version 25 on, both clocks at ticks `time`: monotonic
 * nanoseconds, and seconds and nanoseconds since 1970. */
struct tw_clocks {
  uint64_t frequency;
  uint64_t time, mono_ns, wall_sec, wall_nsec;
};
TB_MUST tb_rc tw_write_sync(struct tw_write *w, const struct tw_clocks *clocks);

/* Writes bytes of an experimental batch; only its experiment knows their meaning. */
TB_MUST tb_rc tw_write_bytes(struct tw_write *w, const void *bytes, size_t len);

#endif
