/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's losses, and the accounting about them. Shared inside agent/: the lock is held in every call.
 *
 * When the pool is full, the oldest generation of which nothing was sent is dropped, else the one being
 * written is abandoned: its unsent rest goes, and so does what is still to come of it. Each drop leaves a
 * LOSS run in the place of what it dropped; neighbours that are not said yet become one.
 *
 * Threads   the writer's alone, but for those that say a LOSS, the sender's.
 */
#ifndef TA_SPOOL_LOSSES_H
#define TA_SPOOL_LOSSES_H

#include "agent/spool/spool.h"

enum { TA_RUNS_SPARE = 8 }; /* always left for LOSS, CLOSE and a stream that restarts */

/* Room for bytes more in the generation being written; NULL: it had to go itself. */
struct ta_run *ta__make_room(struct ta_spool *s, size_t bytes);
/* A run for the generation. Where none is to be had it is lost from its first batch on. */
void ta__begin_generation(struct ta_spool *s, uint64_t gen);
/* The generation being written goes: where it was made something is missing. */
void ta__lose_writing(struct ta_spool *s, uint32_t reason);
/* A LOSS finds its words when it is its turn. It waits (false) while its generation may lose more, and
 * while runs are short: then it is better that it takes in what follows. */
bool ta__say_loss(struct ta_spool *s, struct ta_run *run);
void ta__word_loss(struct ta_run *run); /* at once */

#endif
