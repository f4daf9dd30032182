/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by writer.c and proof.c. */
#ifndef TC_SEGMENT_PRIVATE_H
#define TC_SEGMENT_PRIVATE_H

#include "collector/segment/writer.h"

/* writer.c: copies bytes at..upto of another segment's file to the end of this one's. */
TB_MUST tb_rc tc__segment_copy(const struct tc_segment *from, uint64_t at, uint64_t upto,
                               struct tc_segment *to, struct tb_diag *diag);

/* proof.c: returns false if the file must be read now. */
bool tc__segment_trust(struct tc_segment *segment, const struct tc_segment_part *part);

#endif
