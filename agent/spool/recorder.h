/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder: a spool that holds its newest generations back until a snap is requested.
 *
 * Held runs are the last ones in the spool: generations, and LOSS runs of generations without memory. They have no
 * sequence numbers, no place in the stream's order, and are in no counter: a generation that is too old or has to make
 * room is forgotten, which is not a loss, since its delivery was never promised. A snap releases the held runs of its
 * time, oldest first, and all that follow, until the generation being written has ended. Released runs are produced,
 * sent, acked or lost like any other. Older runs are then forgotten, since numbers in a stream must rise.
 *
 *   HEADER .. sent .. to be sent | held, held, held (being written)
 *
 * Threads   any; began and ended: the writer's. In calls with two underscores the spool's lock is held.
 * Errors    TB_UNSUPPORTED: not a recorder. TB_BUDGET: TA_SNAPS_MAX snaps are in progress.
 */
#ifndef TA_SPOOL_RECORDER_H
#define TA_SPOOL_RECORDER_H

#include "agent/spool/runs.h"

struct ta_spool;

enum { TA_SNAPS_MAX = 4 };

/* The result of a finished snap, all acked or reported as lost. */
struct ta_snapped {
  uint64_t id;
  uint64_t first_gen, last_gen; /* first_gen 0: nothing */
  uint64_t generations, lost_generations;
  struct ta_count all; /* of whole generations */
  uint64_t from_wall_ns, to_wall_ns;
};

struct ta_snap {
  struct ta_snapped out; /* id 0: free */
  unsigned ends;         /* generation ends to wait for */
  uint64_t records;      /* done when this many of the spool's records are settled */
};

struct ta_recorder {
  uint64_t keep_ns; /* 0: nothing is held */
  /* Generation ends until a snap is complete: 1, or 2 if an end is known only when the next one begins. */
  unsigned ends;
  unsigned tail;          /* ends to wait for before generations are held again */
  uint32_t first;         /* the oldest held run, or TA_NONE */
  uint64_t ended_wall_ns; /* end of the last generation; before the first, start of the stream */
  uint64_t forgotten_generations, snaps;
  struct ta_snap snap[TA_SNAPS_MAX];
};

struct ta_recorded {
  uint64_t generations, bytes, forgotten_generations, snaps;
};

/* Call before the first record. keep_ns 0: nothing is held. */
void ta_spool_record(struct ta_spool *s, uint64_t keep_ns);
void ta_spool_record_ends(struct ta_spool *s, unsigned ends); /* default 1 */
/* Releases runs that ended within the last last_ns, 0: all; id 0: nobody reads the result. *out_wake: the sender
 * sleeps and must be woken. */
TB_MUST tb_rc ta_spool_snap(struct ta_spool *s, uint64_t last_ns, uint64_t id, bool *out_wake);
/* Returns each finished snap once; false: there is none. */
bool ta_spool_snapped(struct ta_spool *s, struct ta_snapped *out);
void ta_spool_unask(struct ta_spool *s); /* nobody waits for snaps with an id any more */
void ta_spool_recorded(struct ta_spool *s, struct ta_recorded *out);

/* The last run has just begun. */
void ta__recorder_began(struct ta_spool *s);
/* A run has ended; returns false if it is held. */
bool ta__recorder_ended(struct ta_spool *s, struct ta_run *run);
/* Forgets the oldest complete held run; returns false if there is none. */
bool ta__recorder_forget(struct ta_spool *s);
/* A released complete generation was dropped after all. */
void ta__recorder_lost(struct ta_spool *s, const struct ta_run *run);
/* The stream is finished: nothing is held any more. */
void ta__recorder_finish(struct ta_spool *s);

#endif
