/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the open files of segments that are being written: a stream that is silent in the middle of a generation has a
 * segment for minutes, but must not use a descriptor that a connection needs. The files used last stay open; others are
 * opened again on use. Call tc_descriptors_add() for a new segment; the segment's functions do the rest.
 *
 * If a file is closed with unsynced bytes, a write error may go unnoticed: the next sync checks the file by its checksum
 * (tc_segment.unsure).
 *
 * Threads   the sealer (before it runs, the starting thread).
 */
#ifndef TC_SEGMENT_DESCRIPTORS_H
#define TC_SEGMENT_DESCRIPTORS_H

#include <sys/queue.h>

#include "base/result.h"

struct tc_segment;

struct tc_descriptors {
  TAILQ_HEAD(, tc_segment) open; /* the longest unused first */
  size_t n, max;
};

/* max: at least 1. */
void tc_descriptors_init(struct tc_descriptors *descriptors, size_t max);
/* Adds a segment with an open file. May close files of others. */
void tc_descriptors_add(struct tc_descriptors *descriptors, struct tc_segment *segment);
/* Opens the segment's file if it is closed. Does nothing for a segment that was never added. */
TB_MUST tb_rc tc_descriptors_use(struct tc_segment *segment, struct tb_diag *diag);
void tc_descriptors_remove(struct tc_segment *segment); /* before the file is finally closed */

#endif
