/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a trace of header 1.26 with sub-streams and blobs, generation by generation: one goroutine on one thread,
 * whose logs refer to the blobs.
 *
 *   tt_blobs_open(&t);
 *   tt_blobs_put(&t, "heap.spans", id, bytes, n);    -- a blob, and the log that holds it
 *   tt_blobs_end(&t);                                -- the generation is over, the next begins
 *   ... t.bytes ...
 *
 * A write that fails fails the test.
 */
#ifndef TT_BLOB_TRACE_H
#define TT_BLOB_TRACE_H

#include "base/buf.h"
#include "wire/substream.h"

enum { TT_BLOBS_THREAD = 7 };

struct tt_blobs {
  struct tb_mem mem;
  struct tb_buf bytes;
  uint64_t gen, time;
  uint8_t experiment;    /* of batches opened from now on; 1 */
  size_t batch_bytes;    /* size of each; default TW_WRITE_ROOM */
  struct tw_write batch; /* the open batch; room is NULL if there is none */
  struct tb_buf names;   /* of this generation's logs: key NUL word NUL */
  size_t logs;
  unsigned char room[TW_WRITE_ROOM];
};

void tt_blobs_open(struct tt_blobs *t);
void tt_blobs_close(struct tt_blobs *t);

/* Closes the open batch, if any, and opens one of this sub-stream. */
void tt_blobs_batch(struct tt_blobs *t, enum tw_substream_kind kind, const char *name);
/* Writes bytes unchanged into a batch of their own, of the current experiment. */
void tt_blobs_raw(struct tt_blobs *t, const void *bytes, size_t n);
/* Adds a blob to the open batch (tt_blobs_batch()), and to as many further batches as it needs. */
void tt_blobs_add(struct tt_blobs *t, const char *name, uint64_t id, const void *bytes, size_t n);
/* Writes one piece exactly as described, valid or not; it must fit into the open batch. */
void tt_blobs_piece(struct tt_blobs *t, uint64_t id, uint64_t blob_bytes, uint64_t at,
                    const void *bytes, size_t n);
/* Writes the log that refers to the blob. */
void tt_blobs_log(struct tt_blobs *t, const char *name, uint64_t id);
/* Writes a batch with one blob, and its log. */
void tt_blobs_put(struct tt_blobs *t, const char *name, uint64_t id, const void *bytes, size_t n);
void tt_blobs_end(struct tt_blobs *t);

#endif
