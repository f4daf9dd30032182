/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by spool.c and restart.c, which restarts a stream. The lock is held in every call. */
#ifndef TA_SPOOL_RESTART_H
#define TA_SPOOL_RESTART_H

#include "agent/spool/spool.h"

/* Writes number and final header of the frame at the granted place. */
void ta__seal(struct ta_spool *s, struct tp_frame *frame);
/* Adds what a frame, just numbered s->seq, reports of produced. */
void ta__count_reported(struct ta_spool *s, const struct ta_run *run, const struct tp_frame *frame);
void ta__word_close(struct ta_spool *s, struct ta_run *run);
/* Adds a run's generations to s->gone, before the run is freed. */
void ta__note_gone(struct ta_spool *s, const struct ta_run *run);
/* Number of leading records that are settled: acked, or counted as lost. */
uint64_t ta__records_settled(struct ta_spool *s);

#endif
