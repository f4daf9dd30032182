/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the log: records are staged into a group, a group is made durable at once.
 *
 *     tc_log_begin()    a group; takes a new file where the last one is full or poisoned
 *     tc_log_stage()    a record each; its lsn is known from here
 *     tc_log_commit()   one pwrite and one fdatasync; only then may anything be acked
 *
 * A file whose write or sync failed is poisoned: the kernel may have dropped the pages and would say
 * yes the next time, so nothing is tried again. The group is forgotten, the next one begins a new file
 * whose snapshot says where the poisoned one ends.
 *
 * Memory    one group's: staged payloads are copied.
 * Threads   use each object from one thread at a time.
 * Errors    begin: those of tc_errno_rc() for a new file; but for TB_IO, try again later. commit: the same, poisoned.
 */
#ifndef TC_WAL_WRITER_H
#define TC_WAL_WRITER_H

#include "collector/wal/files.h"
#include "collector/wal/format.h"
#include "proto/log.pb-c.h"

/* Fills in next_ref and the streams, in memory that stays until the next call. */
struct tc_log_snapshot_source {
  void *self;
  tb_rc (*fill)(void *self, Tracecollect__V1__LogSnapshot *out);
};

struct tc_log_options {
  int wal_fd;
  uint64_t file_bytes, group_bytes;
  bool durable;          /* fdatasync, else write only */
  uint64_t next_lsn;     /* where the first file begins */
  uint64_t previous_end; /* what of the file before counts */
  struct tc_log_snapshot_source snapshot;
  /* For tests: called instead of fdatasync(2); NULL: the real one. */
  int (*sync)(int fd);
};

struct tc_log;

TB_MUST tb_rc tc_log_new(const struct tc_log_options *options, struct tb_diag *diag,
                         struct tc_log **out);
void tc_log_free(struct tc_log *log);

TB_MUST tb_rc tc_log_begin(struct tc_log *log, uint64_t wall_ns, struct tb_diag *diag);
bool tc_log_group_full(const struct tc_log *log);
/* payload_crc is the CRC32C of the payload alone. head's lsn is filled in. */
TB_MUST tb_rc tc_log_stage(struct tc_log *log, struct tc_log_head *head, const void *payload,
                           uint32_t payload_crc);
TB_MUST tb_rc tc_log_commit(struct tc_log *log, struct tb_diag *diag);

/* A file that recovery found: the next call of tc_log_trim() may delete it. In rising order. */
TB_MUST tb_rc tc_log_add_old_file(struct tc_log *log, uint64_t start_lsn, uint64_t bytes);
/* Deletes every file but the current one that lies below lsn, the oldest first; none while no file is current. */
void tc_log_trim(struct tc_log *log, uint64_t lsn);

/* How many of its files somebody has taken away. Where it cannot be seen, none. */
size_t tc_log_missing(const struct tc_log *log);

uint64_t tc_log_durable_lsn(const struct tc_log *log);
uint64_t tc_log_bytes(const struct tc_log *log); /* of all its files */
size_t tc_log_file_count(const struct tc_log *log);

#endif
