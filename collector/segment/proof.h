/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred checks of files that a checkpoint lists.
 *
 * A start may resume thousands of runs of some MiB each. Their bytes were synced before the checkpoint was written, so
 * tc_segment_resume() checks only the size, the header and the last generation. The rest is checked here, in steps between
 * other work, and always before anybody reads the file and before a meta or another checkpoint describes it. The hash is
 * computed from the generations' hashes in the checkpoint. Without these, or with archive.hash sha256, the start reads the
 * whole file.
 *
 * Threads   use each object from one thread at a time.
 * Errors    prove: TB_AGAIN: there is more to read. TB_CORRUPT, TB_UNREADABLE: the old bytes are damaged;
 *           tc_segment_part_off() saves newer ones. Others: the file cannot be read now; its state is unknown.
 */
#ifndef TC_SEGMENT_PROOF_H
#define TC_SEGMENT_PROOF_H

#include "collector/segment/writer.h"

static inline bool tc_segment_is_proven(const struct tc_segment *segment) {
  return segment->owed.bytes == 0;
}

/* Flushes the segment, then reads the next part of the bytes that are still to be checked. TB_OK: all are checked. */
TB_MUST tb_rc tc_segment_prove(struct tc_segment *segment, struct tb_diag *diag);

/* For a damaged file: moves the generations after those of the checkpoint, and the open one, into a new segment with this
 * header; *out_rest NULL: there are none. The old file is cut to the checkpoint's size; the caller puts it into quarantine.
 * A failure changes nothing; *out_rest is then as after tc_segment_new(). */
TB_MUST tb_rc tc_segment_part_off(struct tc_segment *segment, const char *stream_hex,
                                  const void *header, size_t header_len, struct tb_diag *diag,
                                  struct tc_segment **out_rest);

#endif
