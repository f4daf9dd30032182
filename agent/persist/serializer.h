/* SPDX-License-Identifier: Apache-2.0 */
/* Serializes the parts of a spool that are not on disk yet, piece by piece, and restores a spool from such pieces.
 *
 * Out: the sender gets one piece after the other from ta_spool_unsaved(), each once, and writes it to disk. Between
 * ta_spool_keep() and ta_spool_keep_not() the spool sends only records that the sender got in a piece before.
 *
 * In: the successor of a process that died starts with that process's struct ta_accounting, adds the runs that it finds,
 * in order, and finishes. Numbers follow from the accounting and that order, since only records without a number are
 * ever dropped.
 *
 * Threads   all of it on the sender's thread.
 * Errors    TB_NOMEM: the restored spool has no room.
 */
#ifndef TA_PERSIST_SERIALIZER_H
#define TA_PERSIST_SERIALIZER_H

#include "agent/spool/spool.h"

enum {
  TA_PIECE_BYTES = 128 << 10, /* most bytes of frames; the largest frame fits */
  TA_KEPT_HEAD_BYTES = 32,    /* before each frame */
};

/* A run without its frames, as stored on disk. */
struct ta_run_image {
  uint64_t id, covers;   /* runs after id up to covers were merged into it */
  uint32_t kind, reason; /* enum ta_run_kind */
  uint32_t open, lost;
  uint64_t gen, last_gen;
  uint64_t end_bytes; /* size of the valid frames; bytes after them are ignored */
  struct ta_count all, sealed;
  uint64_t first_wall_ns, last_wall_ns;
};

struct ta_piece {
  struct ta_run_image run;
  uint64_t at; /* offset of the frames among the run's frames on disk */
  size_t n;
  uint64_t kept_covers; /* replaced files up to this id are deleted already */
};

/* The accounting of acked records, and the place where the unacked ones begin. */
struct ta_accounting {
  uint64_t front_id;             /* run of the oldest unacked record */
  uint64_t front_bytes;          /* acked bytes of its frames on disk */
  uint64_t front_done;           /* the run is a single record, which is acked */
  uint64_t acked_seq, given_seq; /* last number acked; last number given */
  uint64_t acked_generations, lost_generations;
  struct ta_count settled, settled_lost;
  struct ta_span gone;
  uint64_t header_n;
  unsigned char header[TA_SLOT_BYTES - TP_HEADER_BYTES];
};

/* Starts keeping; no record is on disk yet. */
void ta_spool_keep(struct ta_spool *s);
/* Stops keeping. */
void ta_spool_keep_not(struct ta_spool *s);
/* Writes the next piece to *out and its frames to room, with checksums that begin with salt. Returns false if there is none. */
bool ta_spool_unsaved(struct ta_spool *s, uint32_t salt, unsigned char room[TA_PIECE_BYTES],
                      struct ta_piece *out);
/* Gives back a piece that could not be written: ta_spool_unsaved() will return it again. */
void ta_spool_unsaved_again(struct ta_spool *s, const struct ta_piece *piece);
/* Returns true if the disk has unacked records, which a successor would send. */
bool ta_spool_has_kept(struct ta_spool *s);
/* Returns true if all numbered records are on disk, so that a successor can continue after them. */
bool ta_spool_given_kept(struct ta_spool *s);
void ta_spool_accounting(struct ta_spool *s, struct ta_accounting *out);

/* Reads a frame of a piece: TB_OK, TB_AGAIN: bytes are missing, TB_CORRUPT. */
TB_MUST tb_rc ta_kept_frame(uint32_t salt, const unsigned char *bytes, size_t n,
                            struct tp_frame *out);

void ta_spool_inherit(struct ta_spool *s, const struct ta_accounting *accounting);
TB_MUST tb_rc ta_spool_inherit_run(struct ta_spool *s, const struct ta_run_image *run);
TB_MUST tb_rc ta_spool_inherit_frame(struct ta_spool *s, const struct tp_frame *frame);
void ta_spool_inherited(struct ta_spool *s); /* that was all */

#endif
