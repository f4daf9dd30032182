/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back what a checkpoint vouches for.
 *
 * A start takes runs up by the thousand, each of some MiB. Their bytes were synced before the checkpoint was written, so
 * tc_segment_resume() looks at the size, the header and the last generation only, and the file goes on. It owes a proof:
 * before anybody reads it, and before a meta or another checkpoint says what is in it, all of it is read back here, in
 * steps between other work. Its hash is made of its generations' hashes, which the checkpoint has: where it has none, or
 * archive.hash is sha256, the start reads all of it.
 *
 * Threads   use each object from one thread at a time.
 * Errors    prove: TB_AGAIN, there is more to read. TB_CORRUPT, TB_UNREADABLE: what was vouched for is not what it was;
 *           tc_segment_part_off() saves what came since. Others: it cannot be read now, and nothing is known.
 */
#ifndef TC_SEGMENT_PROOF_H
#define TC_SEGMENT_PROOF_H

#include "collector/segment/writer.h"

static inline bool tc_segment_is_proven(const struct tc_segment *segment) {
  return segment->owed.bytes == 0;
}

/* Flushes, and reads a step on. */
TB_MUST tb_rc tc_segment_prove(struct tc_segment *segment, struct tb_diag *diag);

/* Of a file that is not what it was: the generations behind those that were vouched for, and the open one, get a file
 * and a segment of their own, with this header. NULL: there are none. The old one is as the checkpoint noted it, and
 * holds no longer than until it is put aside. A failure changes nothing; *out_rest is then as after
 * tc_segment_new(). */
TB_MUST tb_rc tc_segment_part_off(struct tc_segment *segment, const char *stream_hex,
                                  const void *header, size_t header_len, struct tb_diag *diag,
                                  struct tc_segment **out_rest);

#endif
