/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-streams and blobs inside experimental batches: a layer of our own on what the format leaves to its
 * owners (docs/FORMAT.md, "Sub-streams and blobs").
 *
 * An experiment has one heap of batches a generation. A batch that begins with the header of this file
 * belongs to a named sub-stream of it, and holds either bytes of the owner's own or pieces of blobs. A blob is
 * any number of bytes under an id that an event of the same generation holds; ids are unique in a generation,
 * whatever the experiment, and 0 stands for none. All other batches, Go's own among them, are none of ours.
 *
 *   tw_write_open(&w, room, sizeof room, version, &head);        -- head.experiment is set
 *   rc = tw_write_substream(&w, TW_SUBSTREAM_BLOBS, "heap.spans", 10);
 *   struct tw_blob blob = { .id = id, .bytes = bytes, .len = n };
 *   while ((rc = tw_write_blob(&w, &blob)) == TB_AGAIN)          -- the batch is full
 *     ship(room, tw_write_close(&w)), open the next in the same way;
 *
 * One batch takes pieces of many blobs, so what a small one costs is its piece: about 10 bytes more than itself.
 *
 * This layer is an experiment, too (requirement J13): it promises nothing between releases but that
 * TW_SUBSTREAM_VERSION rises when bytes change their meaning, and that a reader passes over what it does not know.
 *
 * Memory    none: writes into the caller's room, lends from the caller's bytes.
 * Errors    reading: TB_NOTFOUND: no sub-stream. TB_UNSUPPORTED, TB_BROKEN: one that cannot be read; see diag's
 *           text (the caller fills in the place). Writing: as in wire/write.h.
 */
#ifndef TW_SUBSTREAM_H
#define TW_SUBSTREAM_H

#include "wire/write.h"

enum {
  TW_SUBSTREAM_VERSION = 1,
  TW_SUBSTREAM_NAME_MAX = 64,  /* bytes: letters, digits and ._/- */
  TW_SUBSTREAM_ROOM_MIN = 512, /* least bytes of a batch of pieces, its own header included */
  TW_BLOB_BYTES_MAX = 64 << 20,
  TW_BLOB_WORD_BYTES = 26, /* "blob:", a number, NUL */
};

enum tw_substream_kind {
  TW_SUBSTREAM_BYTES = 1, /* the payload is the owner's */
  TW_SUBSTREAM_BLOBS = 2, /* pieces of blobs follow */
};

struct tw_substream {
  enum tw_substream_kind kind;
  const char *name;
  size_t name_len;
  const unsigned char *data; /* behind the header */
  size_t len;
};
/* data: of an experimental batch. */
TB_MUST tb_rc tw_substream_read(const unsigned char *data, size_t len, struct tb_diag *diag,
                                struct tw_substream *out);

struct tw_piece {
  uint64_t id, blob_bytes, at; /* the blob's id and size, and the place in it */
  const unsigned char *data;
  size_t len; /* only an empty blob's is 0 */
};
/* The next piece of a batch. TB_END: no more. After an error the rest of the batch cannot be read. */
TB_MUST tb_rc tw_piece_read(const unsigned char **pos, const unsigned char *end,
                            struct tb_diag *diag, struct tw_piece *out);

/* First thing in an experimental batch. TB_UNSUPPORTED: before version 23 there are no such batches. */
TB_MUST tb_rc tw_write_substream(struct tw_write *w, enum tw_substream_kind kind, const char *name,
                                 size_t name_len);

struct tw_blob {
  uint64_t id;
  const void *bytes;
  size_t len, done; /* done: how much of it is written */
};
/* TB_OK: all of it is written. TB_AGAIN: this batch is full, the rest goes into the next. */
TB_MUST tb_rc tw_write_blob(struct tw_write *w, struct tw_blob *blob);

/* An event that every Go tool reads and that holds a blob: a log whose key is the sub-stream's name and whose
 * message is this word, "blob:17". */
size_t tw_blob_word(uint64_t id, char out[TW_BLOB_WORD_BYTES]);
/* Returns 0 if it is not such a word. */
uint64_t tw_blob_word_read(const char *word, size_t len);

#endif
