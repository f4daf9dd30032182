/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder: a spool that holds its newest generations back until a request comes.
 *
 * Held runs stand behind everything else in the spool: generations, and LOSS runs of those that found no
 * memory. It has no number and no place in the stream's order, and is in no counter: a generation that grows
 * too old or has to make room is forgotten, which is no loss, since it was promised to no one. A snap lets out what
 * is held of its time, oldest first, and what comes next, until the generation that was being written has ended.
 * From then on it is produced, sent, acked or lost like any other. Runs older than the snap's time are
 * forgotten, since numbers in a stream rise.
 *
 *   HEADER .. sent .. to be sent | held, held, held (being written)
 *
 * Threads   any, but for begin and ended, the writer's. Those with two underscores: the spool's lock is held.
 * Errors    TB_UNSUPPORTED: it does not record. TB_BUDGET: TA_SNAPS_MAX are under way.
 */
#ifndef TA_SPOOL_RECORDER_H
#define TA_SPOOL_RECORDER_H

#include "agent/spool/runs.h"

struct ta_spool;

enum { TA_SNAPS_MAX = 4 };

/* The result of a snap: all of it is acked, or reported as lost. */
struct ta_snapped {
  uint64_t id;
  uint64_t first_gen, last_gen; /* first_gen 0: nothing */
  uint64_t generations, lost_generations;
  struct ta_count all; /* of whole ones */
  uint64_t from_wall_ns, to_wall_ns;
};

struct ta_snap {
  struct ta_snapped out; /* id 0: free */
  unsigned ends;         /* of generations that are waited for */
  uint64_t records;      /* of the spool: with so many settled it is done */
};

struct ta_recorder {
  uint64_t keep_ns; /* 0: nothing is held */
  unsigned
      ends; /* after so many the moment of a snap is behind us: 1, or 2 where a generation's end is only
                       seen when the next one comes */
  unsigned tail;          /* ends still to come before generations are held again */
  uint32_t first;         /* the oldest that is held, or TA_NONE */
  uint64_t ended_wall_ns; /* the last generation, or when the stream began: then the next one did */
  uint64_t forgotten_generations, snaps;
  struct ta_snap snap[TA_SNAPS_MAX];
};

struct ta_recorded {
  uint64_t generations, bytes, forgotten_generations, snaps;
};

/* Before the first record; 0: nothing is held. */
void ta_spool_record(struct ta_spool *s, uint64_t keep_ns);
void ta_spool_record_ends(struct ta_spool *s, unsigned ends); /* 1 if it is not called */
/* Lets out what ended within the last last_ns, 0: all; id 0: its result will not be asked. *out_wake: the sender
 * sleeps and must be woken. */
TB_MUST tb_rc ta_spool_snap(struct ta_spool *s, uint64_t last_ns, uint64_t id, bool *out_wake);
/* One that is done, once; false: none is. */
bool ta_spool_snapped(struct ta_spool *s, struct ta_snapped *out);
void ta_spool_unask(struct ta_spool *s); /* those with an id have no waiter any more */
void ta_spool_recorded(struct ta_spool *s, struct ta_recorded *out);

/* The last run has just begun. */
void ta__recorder_began(struct ta_spool *s);
/* It has ended; false: it is held. */
bool ta__recorder_ended(struct ta_spool *s, struct ta_run *run);
/* The oldest that is held and complete goes; false: there is none. */
bool ta__recorder_forget(struct ta_spool *s);
/* A complete generation that was let out is given up after all. */
void ta__recorder_lost(struct ta_spool *s, const struct ta_run *run);
/* The stream is finished: nothing is held any more. */
void ta__recorder_finish(struct ta_spool *s);

#endif
