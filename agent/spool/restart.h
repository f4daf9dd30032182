/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a stream that restarts (restart.c) into the spool. Shared inside agent/: the lock is held in every
 * call. */
#ifndef TA_SPOOL_RESTART_H
#define TA_SPOOL_RESTART_H

#include "agent/spool/spool.h"

/* Gives the frame at the granted place its number and its header as it goes out. */
void ta__seal(struct ta_spool *s, struct tp_frame *frame);
/* The frame has its number now, s->seq: what it reports of produced. */
void ta__count_reported(struct ta_spool *s, const struct ta_run *run, const struct tp_frame *frame);
void ta__word_close(struct ta_spool *s, struct ta_run *run);
/* Before a run is given back: its generations are part of what is gone. */
void ta__note_gone(struct ta_spool *s, const struct ta_run *run);
/* How many of the records put, in their order, are settled: acked, or counted as lost. */
uint64_t ta__records_settled(struct ta_spool *s);

#endif
