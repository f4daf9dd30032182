/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the log in their folder: the next one is made, those that are no longer needed go.
 *
 * One file that is not needed any more is kept as wal/spare and becomes the next one under another name:
 * its blocks are allocated and written already, so that a sync of what is written over them has no
 * allocation to write along. Its content does not count: a record's lsn is its position, and its
 * checksum has its file's salt.
 *
 * Threads   use each object from one thread at a time.
 * Errors    make: TB_NOMEM, and those of tc_errno_rc(). A file that could not be made is gone again.
 */
#ifndef TC_WAL_FILES_H
#define TC_WAL_FILES_H

#include "base/result.h"

/* Where groups begin and how long they are is a multiple of this: what unbuffered writes ask for. */
enum { TC_LOG_BLOCK = 4096, TC_LOG_NAME_BYTES = 24 };

struct tc_log_files {
  int wal_fd;    /* the folder, borrowed */
  bool durable;  /* written past the page cache if the file system can, names synced */
  bool unsynced; /* some went, and that is not known to be on the disk */
  struct tc_log_file {
    uint64_t start, bytes;
    bool poisoned; /* a write of it failed: its blocks are not used again */
  } * items;       /* the last is the one that is written */
  size_t n, cap;
};

void tc_log_files_init(struct tc_log_files *files, int wal_fd, bool durable);
void tc_log_files_fini(struct tc_log_files *files);

void tc_log_file_name(uint64_t start_lsn, char out[TC_LOG_NAME_BYTES]);

/* Adds one that is there already. In rising order. */
TB_MUST tb_rc tc_log_files_add(struct tc_log_files *files, uint64_t start, uint64_t bytes);
/* Makes one of so many bytes, allocated, its name durable; unbuffered if the file system can. */
TB_MUST tb_rc tc_log_files_make(struct tc_log_files *files, uint64_t start, uint64_t bytes,
                                struct tb_diag *diag, int *out_fd);
void tc_log_files_poison(struct tc_log_files *files); /* the last one */
/* The last one came to nothing: it goes at once. If it cannot it stays one of them, to be deleted later. */
void tc_log_files_undo(struct tc_log_files *files);
/* All that lie below lsn go, the oldest first, on the disk as well; the last one stays: recovery needs a snapshot. */
void tc_log_files_trim(struct tc_log_files *files, uint64_t lsn);

#endif
