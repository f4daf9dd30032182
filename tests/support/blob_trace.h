/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of header 1.26 that carries sub-streams and blobs, written generation by generation: one goroutine on
 * one thread, whose logs hold the blobs.
 *
 *   tt_blobs_open(&t);
 *   tt_blobs_put(&t, "heap.spans", id, bytes, n);    -- a blob, and the log that holds it
 *   tt_blobs_end(&t);                                -- the generation is over, the next begins
 *   ... t.bytes ...
 *
 * Whatever cannot be written fails the test.
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
  size_t batch_bytes;    /* of room for each of them; TW_WRITE_ROOM */
  struct tw_write batch; /* the one that is open; room NULL: none is */
  struct tb_buf names;   /* of this generation's logs: key NUL word NUL */
  size_t logs;
  unsigned char room[TW_WRITE_ROOM];
};

void tt_blobs_open(struct tt_blobs *t);
void tt_blobs_close(struct tt_blobs *t);

/* Closes the batch that is open, if any, and opens one of this sub-stream. */
void tt_blobs_batch(struct tt_blobs *t, enum tw_substream_kind kind, const char *name);
/* Bytes as they are into a batch of their own, of the current experiment. */
void tt_blobs_raw(struct tt_blobs *t, const void *bytes, size_t n);
/* A blob after what the open batch has (tt_blobs_batch()), over as many more as it takes. */
void tt_blobs_add(struct tt_blobs *t, const char *name, uint64_t id, const void *bytes, size_t n);
/* Writes one piece exactly as described, valid or not; it must fit into the open batch. */
void tt_blobs_piece(struct tt_blobs *t, uint64_t id, uint64_t blob_bytes, uint64_t at,
                    const void *bytes, size_t n);
/* The log that holds it. */
void tt_blobs_log(struct tt_blobs *t, const char *name, uint64_t id);
/* A batch with one blob, and its log. */
void tt_blobs_put(struct tt_blobs *t, const char *name, uint64_t id, const void *bytes, size_t n);
void tt_blobs_end(struct tt_blobs *t);

#endif
