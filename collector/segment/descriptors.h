/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of segments that are written: a stream that falls silent in the middle of its generation keeps its
 * segment for minutes, and must not keep a descriptor so long that a connection needs. Of those that are open at most
 * so many stay open, the ones used last; the others are opened again when they are used.
 *
 *     tc_descriptors_add() after a segment was made; from then on the segment's own functions keep count
 *
 * A file that was closed with bytes that no sync has confirmed may have lost them unseen: the next sync proves it by its
 * checksum (tc_segment.unsure).
 *
 * Threads   the sealer's (the starting thread's until that runs).
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
/* The segment has a descriptor, and is in use. Others may lose theirs. */
void tc_descriptors_add(struct tc_descriptors *descriptors, struct tc_segment *segment);
/* Opens it if it is not; a segment that was never added stays as it is. */
TB_MUST tb_rc tc_descriptors_use(struct tc_segment *segment, struct tb_diag *diag);
void tc_descriptors_remove(
    struct tc_segment *segment); /* before its descriptor is closed for good */

#endif
