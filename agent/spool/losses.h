/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's losses and their accounting. Shared inside agent/: the lock is held in every call.
 *
 * If the pool is full, the oldest generation of which nothing was sent is dropped. If there is none, the one being
 * written is abandoned: its unsent records and all later ones are dropped. Each drop leaves a LOSS run in the place of
 * the dropped records; adjacent LOSS runs that were not sent yet are merged.
 *
 * Threads   the writer's; ta__say_loss() and ta__word_loss(), the sender's.
 */
#ifndef TA_SPOOL_LOSSES_H
#define TA_SPOOL_LOSSES_H

#include "agent/spool/spool.h"

enum { TA_RUNS_SPARE = 8 }; /* always left for LOSS, CLOSE and a stream that restarts */

/* Makes room in the generation being written. Returns NULL if that generation had to be dropped itself. */
struct ta_run *ta__make_room(struct ta_spool *s, size_t bytes);
/* Begins a run for the generation. If no run is free, the whole generation is lost. */
void ta__begin_generation(struct ta_spool *s, uint64_t gen);
/* Drops the generation being written, because its producer lost a part of it. */
void ta__lose_writing(struct ta_spool *s, uint32_t reason);
/* Composes a LOSS record when it is next to be sent. Returns false (wait) while its generation may lose more, and
 * while few runs are free: then later losses are better merged into it. */
bool ta__say_loss(struct ta_spool *s, struct ta_run *run);
void ta__word_loss(struct ta_run *run); /* at once */

#endif
