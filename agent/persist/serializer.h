/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a spool that are not on disk yet, piece by piece; and the way back, a spool made of such pieces.
 *
 * Out: the sender asks for one piece after the other and writes it where the next asking will not find it again:
 * each is given once. While keeping, the spool lets no record go out that was not given.
 *
 * In: a successor of a process that died begins with the accounting, adds what it finds, run by run in order,
 * and ends. Numbers follow from the accounting and that order, since only what has none yet is ever dropped.
 *
 * Threads   all of it on the sender's thread.
 * Errors    TB_NOMEM: a spool made of pieces has no room for it.
 */
#ifndef TA_PERSIST_SERIALIZER_H
#define TA_PERSIST_SERIALIZER_H

#include "agent/spool/spool.h"

enum {
  TA_PIECE_BYTES = 128 << 10, /* of frames, at most; the largest fits */
  TA_KEPT_HEAD_BYTES = 32,    /* in front of each frame */
};

/* A run but for its frames, as it goes to disk. */
struct ta_run_image {
  uint64_t id, covers;   /* those behind id up to covers have become part of it */
  uint32_t kind, reason; /* enum ta_run_kind */
  uint32_t open, lost;
  uint64_t gen, last_gen;
  uint64_t end_bytes; /* of frames: those behind were given, too, but do not count */
  struct ta_count all, sealed;
  uint64_t first_wall_ns, last_wall_ns;
};

struct ta_piece {
  struct ta_run_image run;
  uint64_t at; /* of the frames among those of the run that are on disk */
  size_t n;
  uint64_t
      kept_covers; /* of the files that the run takes the place of, those up to there went before */
};

/* The accounting of acked records, and where the others begin. */
struct ta_accounting {
  uint64_t front_id;             /* the run of the oldest record that is not acked */
  uint64_t front_bytes;          /* so many bytes of its frames that are on disk are acked */
  uint64_t front_done;           /* it is a record that stands alone, and acked */
  uint64_t acked_seq, given_seq; /* numbers up to there are acked, are given */
  uint64_t acked_generations, lost_generations;
  struct ta_count settled, settled_lost;
  struct ta_span gone;
  uint64_t header_n;
  unsigned char header[TA_SLOT_BYTES - TP_HEADER_BYTES];
};

/* From now on, nothing that is there is on disk. */
void ta_spool_keep(struct ta_spool *s);
/* There is no disk any more. */
void ta_spool_keep_not(struct ta_spool *s);
/* The next piece, its frames in room; salt goes into their checksums. false: there is none. */
bool ta_spool_unsaved(struct ta_spool *s, uint32_t salt, unsigned char room[TA_PIECE_BYTES],
                      struct ta_piece *out);
/* It could not be written: it is given again. */
void ta_spool_unsaved_again(struct ta_spool *s, const struct ta_piece *piece);
/* Whether something on disk is not acked yet: our successor would send it. */
bool ta_spool_has_kept(struct ta_spool *s);
/* Whether all that has a number is: a successor can go on where we are. */
bool ta_spool_given_kept(struct ta_spool *s);
void ta_spool_accounting(struct ta_spool *s, struct ta_accounting *out);

/* A frame out of such a piece: TB_OK, TB_AGAIN: it is cut short, TB_CORRUPT. */
TB_MUST tb_rc ta_kept_frame(uint32_t salt, const unsigned char *bytes, size_t n,
                            struct tp_frame *out);

void ta_spool_inherit(struct ta_spool *s, const struct ta_accounting *accounting);
TB_MUST tb_rc ta_spool_inherit_run(struct ta_spool *s, const struct ta_run_image *run);
TB_MUST tb_rc ta_spool_inherit_frame(struct ta_spool *s, const struct tp_frame *frame);
void ta_spool_inherited(struct ta_spool *s); /* that was all */

#endif
