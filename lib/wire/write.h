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
 * The result is well formed (lengths, kinds, version, argument counts, order of time). Whether the
 * events make a trace is the caller's business: statuses, sequences, ids that exist.
 *
 * Memory    writes into the caller's room only: TW_WRITE_ROOM for a batch of the largest size.
 * Errors    TB_AGAIN: does not fit into this batch any more, nothing was written. TB_UNSUPPORTED: this
 *           version has no such event. TB_BROKEN: no trace may hold that (too long a string or stack, an
 *           event of another kind, time that runs backwards).
 */
#ifndef TW_WRITE_H
#define TW_WRITE_H

#include "wire/sections.h"

enum { TW_WRITE_ROOM = TW_BATCH_BYTES_MAX + TW_BATCH_HEADER_BYTES_MAX };

struct tw_write {
  unsigned char *room, *pos, *end;
  unsigned char *data; /* behind the header: what the batch holds begins here */
  uint64_t time;       /* of the last event, raw ticks */
  unsigned version;
  enum tw_batch_kind holds; /* EVENTS until a table's first entry */
};

/* Begins a batch with batch's generation, thread, time and experiment. room has at least
 * TW_BATCH_HEADER_BYTES_MAX + 1 bytes. */
void tw_write_open(struct tw_write *w, unsigned char *room, size_t room_bytes, unsigned version,
                   const struct tw_batch *batch);
/* Fills the batch's size in; answers how many bytes of room the batch takes, header and all. The size
 * is padded to its full width, as Go's runtime writes it. From here on w takes nothing: TB_BROKEN, until it is opened
 * again. */
size_t tw_write_close(struct tw_write *w);
bool tw_write_is_empty(const struct tw_write *w);

/* A timed event with as many args as its row in wire/events.def has. time is not below the last one's. */
TB_MUST tb_rc tw_write_event(struct tw_write *w, uint8_t type, uint64_t time, const uint64_t *args);

/* Tables. The first entry of a batch writes the byte that says what the batch holds, so a table's batch
 * holds entries of one kind only. */
TB_MUST tb_rc tw_write_string(struct tw_write *w, uint64_t id, const void *bytes, size_t len);
TB_MUST tb_rc tw_write_stack(struct tw_write *w, uint64_t id, const struct tw_frame *frames,
                             unsigned nframes);
TB_MUST tb_rc tw_write_cpu_sample(struct tw_write *w, const struct tw_cpu_sample *sample);

/* The one sync batch of a generation: ticks a second and, from version 25 on, the two clocks at
 * ticks `time`: monotonic nanoseconds, seconds and nanoseconds since 1970. */
struct tw_clocks {
  uint64_t frequency;
  uint64_t time, mono_ns, wall_sec, wall_nsec;
};
TB_MUST tb_rc tw_write_sync(struct tw_write *w, const struct tw_clocks *clocks);

/* Bytes of an experimental batch, whatever its experiment puts there. */
TB_MUST tb_rc tw_write_bytes(struct tw_write *w, const void *bytes, size_t len);

#endif
