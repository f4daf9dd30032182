/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the spool's files like the spool, on the sender's thread.
 *
 * flush() puts down all that the files lack; the sender does so before records get numbers, notes the numbers
 * before they go out, and otherwise every 100 ms. So a number that went out is always known to the files, and
 * records that were put less than 100 ms ago are known to no other process.
 *
 * A disk that is full, or fails, is no loss: the spool in memory has everything. Records that the files have
 * stay there, since a caller may have been promised it; what they lack waits, unsent, and is tried again every 100
 * ms. When nothing that they have is still to be acked the files go, the stream goes on without, and 10 s later new
 * ones are written.
 * log() hears of it the first time.
 *
 * Threads   the sender's; reported() any, forked() a forked child.
 */
#ifndef TA_PERSIST_WRITER_H
#define TA_PERSIST_WRITER_H

#include "agent/persist/directory.h"

struct ta_spool_writer {
  struct ta_spool *spool;
  struct ta_spool_dir dir;
  struct ta_spool_dir_state state;
  unsigned char *room; /* NULL: there is no disk */
  bool on;
  bool full;              /* the last piece could not be written */
  bool stale;             /* the state is not what was written last */
  uint64_t due_ns;        /* the next flush, or the next try */
  uint64_t dropped_id;    /* files up to there are gone */
  uint64_t punched_bytes; /* of the front run's frames */
  void (*log)(void *self, int level, const char *text);
  void *log_self;
  _Atomic uint64_t reported_bytes, reported_faults;
};

struct ta_spool_writer_config {
  int root; /* taken over */
  uint64_t bytes_max;
  const char *service, *instance;
  void (*log)(void *self, int level, const char *text);
  void *log_self;
};

TB_MUST tb_rc ta_spool_writer_init(struct ta_spool_writer *m,
                                   const struct ta_spool_writer_config *config,
                                   struct ta_spool *spool);
void ta_spool_writer_fini(struct ta_spool_writer *m); /* accepts zeroed memory; the files stay */

/* Files for a stream from now on; those of another one before it go. */
void ta_spool_writer_begin(struct ta_spool_writer *m, const unsigned char stream[16],
                           uint64_t started_wall_ns);
/* 2 MiB at most, and goes on at the next call: due_ns is 0 then. */
void ta_spool_writer_flush(struct ta_spool_writer *m);
/* Numbers were given: to be called before they go out. */
void ta_spool_writer_note(struct ta_spool_writer *m);
/* Nothing more will be sent here: the rest stays, for another process. The last call but fini(). */
void ta_spool_writer_end(struct ta_spool_writer *m);
void ta_spool_writer_forked(struct ta_spool_writer *m);

#endif
