/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-streams and blobs inside experimental batches (docs/FORMAT.md, "Sub-streams and blobs"). The trace format leaves
 * the content of these batches to the experiment; this is our own layer in them.
 *
 * In each generation an experiment has a set of batches. A batch that begins with the header of this file belongs to a
 * named sub-stream of the experiment. It contains either bytes whose meaning only the experiment knows, or pieces of
 * blobs. A blob is any number of bytes with an id, to which an event of the same generation refers. Ids are unique in a
 * generation, over all experiments; 0 means no blob. Batches without this header, such as Go's own, are not ours.
 *
 *   tw_write_open(&w, room, sizeof room, version, &head);        -- head.experiment is set
 *   rc = tw_write_substream(&w, TW_SUBSTREAM_BLOBS, "heap.spans", 10);
 *   struct tw_blob blob = { .id = id, .bytes = bytes, .len = n };
 *   while ((rc = tw_write_blob(&w, &blob)) == TB_AGAIN)          -- the batch is full
 *     ship(room, tw_write_close(&w)), open the next in the same way;
 *
 * A batch has room for pieces of many blobs, so a small blob takes only about 10 bytes more than its content.
 *
 * This layer is itself experimental (requirement J13) and may change with any release. Only two things are promised:
 * TW_SUBSTREAM_VERSION increases when the meaning of bytes changes, and a reader skips what it does not know.
 *
 * Memory    none: writes into the caller's room, lends from the caller's bytes.
 * Errors    reading: TB_NOTFOUND: no sub-stream. TB_UNSUPPORTED, TB_BROKEN: the sub-stream cannot be read, diag has
 *           the reason (the caller fills in the place). Writing: as in wire/write.h.
 */
#ifndef TW_SUBSTREAM_H
#define TW_SUBSTREAM_H

#include "wire/write.h"

enum {
  TW_SUBSTREAM_VERSION = 1,
  TW_SUBSTREAM_NAME_MAX = 64,  /* bytes: letters, digits and ._/- */
  TW_SUBSTREAM_ROOM_MIN = 512, /* minimum size of a batch of pieces, with its header */
  TW_BLOB_BYTES_MAX = 64 << 20,
  TW_BLOB_WORD_BYTES = 26, /* "blob:", a number, NUL */
};

enum tw_substream_kind {
  TW_SUBSTREAM_BYTES = 1, /* bytes of the experiment follow */
  TW_SUBSTREAM_BLOBS = 2, /* pieces of blobs follow */
};

struct tw_substream {
  enum tw_substream_kind kind;
  const char *name;
  size_t name_len;
  const unsigned char *data; /* after the header */
  size_t len;
};
/* data: the content of an experimental batch. */
TB_MUST tb_rc tw_substream_read(const unsigned char *data, size_t len, struct tb_diag *diag,
                                struct tw_substream *out);

struct tw_piece {
  uint64_t id, blob_bytes, at; /* the blob's id and size, and the piece's offset in it */
  const unsigned char *data;
  size_t len; /* 0 only if the blob is empty */
};
/* Reads the next piece of a batch. TB_END: no more. After an error the rest of the batch cannot be read. */
TB_MUST tb_rc tw_piece_read(const unsigned char **pos, const unsigned char *end,
                            struct tb_diag *diag, struct tw_piece *out);

/* Begins a sub-stream; call it first in an experimental batch. TB_UNSUPPORTED: the version is before 23, which has no such
 * batches. */
TB_MUST tb_rc tw_write_substream(struct tw_write *w, enum tw_substream_kind kind, const char *name,
                                 size_t name_len);

struct tw_blob {
  uint64_t id;
  const void *bytes;
  size_t len, done; /* done: number of bytes written */
};
/* TB_OK: all of the blob is written. TB_AGAIN: this batch is full; call it again in the next batch, for the rest. */
TB_MUST tb_rc tw_write_blob(struct tw_write *w, struct tw_blob *blob);

/* Writes the message of a log event that refers to a blob, such as "blob:17"; the log's key is the sub-stream's name. Every Go
 * tool can read such an event. Returns the length. */
size_t tw_blob_word(uint64_t id, char out[TW_BLOB_WORD_BYTES]);
/* Returns 0 if it is not such a word. */
uint64_t tw_blob_word_read(const char *word, size_t len);

#endif
