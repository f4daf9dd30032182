/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the spool to files, on the sender's thread.
 *
 * flush() writes all records that are not in the files yet. The sender calls it before records get numbers, and otherwise
 * every 100 ms; it notes the numbers before they are sent. So the files contain every number that was sent; only records
 * of the last 100 ms may be missing.
 *
 * A full or failing disk loses nothing: the spool in memory is complete. Records in the files stay there, since a caller
 * may have been promised that; the others wait, unsent, and writing them is retried every 100 ms. When all records in
 * the files are acked, the files are deleted, the stream continues without files, and 10 s later new ones are written.
 * log() reports it the first time.
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
  bool stale;             /* the state has changed since it was written */
  uint64_t due_ns;        /* time of the next flush or try */
  uint64_t dropped_id;    /* files up to this run are deleted */
  uint64_t punched_bytes; /* freed bytes of the front run's frames */
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

/* Begins files for a stream; deletes those of the previous one. */
void ta_spool_writer_begin(struct ta_spool_writer *m, const unsigned char stream[16],
                           uint64_t started_wall_ns);
/* Writes at most 2 MiB; if more is left, due_ns is 0 and the next call continues. */
void ta_spool_writer_flush(struct ta_spool_writer *m);
/* Notes assigned numbers; call before records with them are sent. */
void ta_spool_writer_note(struct ta_spool_writer *m);
/* Call it last, before fini(), when nothing more will be sent: leaves the remaining records to another process. */
void ta_spool_writer_end(struct ta_spool_writer *m);
void ta_spool_writer_forked(struct ta_spool_writer *m);

#endif
