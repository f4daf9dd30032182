/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the log: records are staged into a group, and a group is made durable at once.
 *
 *     tc_wal_begin()    begins a group, in a new file if the last one is full or poisoned
 *     tc_wal_stage()    adds a record and sets its lsn
 *     tc_wal_commit()   one pwrite and one fdatasync; nothing may be acked before
 *
 * A file whose write or sync failed is poisoned: the kernel may have dropped the pages, and a second sync would succeed
 * without them. So nothing is tried again: the group is dropped, and the next one begins a new file, whose snapshot has
 * the poisoned file's end.
 *
 * Memory    one group: staged payloads are copied.
 * Threads   use each object from one thread at a time.
 * Errors    begin: those of tc_errno_rc() for a new file; except after TB_IO, try again later.
 *           commit: those of tc_errno_rc(); the file is poisoned.
 */
#ifndef TC_WAL_WRITER_H
#define TC_WAL_WRITER_H

#include "collector/wal/files.h"
#include "collector/wal/format.h"
#include "proto/log.pb-c.h"

/* Fills in next_ref and the streams, in memory that is valid until the next call. */
struct tc_wal_snapshot_source {
  void *self;
  tb_rc (*fill)(void *self, Tracecollect__V1__LogSnapshot *out);
};

struct tc_wal_options {
  int wal_fd;
  uint64_t file_bytes, group_bytes;
  bool durable;          /* call fdatasync(2) after each write */
  uint64_t next_lsn;     /* start of the first file */
  uint64_t previous_end; /* end of the last existing file's valid part */
  struct tc_wal_snapshot_source snapshot;
  int (*sync)(int fd); /* for tests, instead of fdatasync(2); NULL: fdatasync(2) */
};

struct tc_wal;

TB_MUST tb_rc tc_wal_new(const struct tc_wal_options *options, struct tb_diag *diag,
                         struct tc_wal **out);
void tc_wal_free(struct tc_wal *log);

TB_MUST tb_rc tc_wal_begin(struct tc_wal *log, uint64_t wall_ns, struct tb_diag *diag);
bool tc_wal_group_full(const struct tc_wal *log);
/* Copies a record into the group and sets head->lsn. payload_crc is the CRC32C of the payload alone. */
TB_MUST tb_rc tc_wal_stage(struct tc_wal *log, struct tc_wal_head *head, const void *payload,
                           uint32_t payload_crc);
TB_MUST tb_rc tc_wal_commit(struct tc_wal *log, struct tb_diag *diag);

/* Adds a file that recovery found, in rising order; tc_wal_trim() may delete it. */
TB_MUST tb_rc tc_wal_add_old_file(struct tc_wal *log, uint64_t start_lsn, uint64_t bytes);
/* Deletes the files that end at or before lsn, oldest first, except the current one; none while no file is open. */
void tc_wal_trim(struct tc_wal *log, uint64_t lsn);

/* Returns the number of its files that somebody removed. */
size_t tc_wal_missing(const struct tc_wal *log);

uint64_t tc_wal_durable_lsn(const struct tc_wal *log);
uint64_t tc_wal_bytes(const struct tc_wal *log); /* size of all files */
size_t tc_wal_file_count(const struct tc_wal *log);

#endif
