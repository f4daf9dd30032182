/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the log in their folder: makes the next one, deletes those that are no longer needed.
 *
 * One unneeded file is kept as wal/spare and renamed to become the next one: its blocks are allocated and written
 * already, so a sync of new bytes has no allocation to write. Old records in it are invalid: a record has its lsn, which is
 * its position, and the checksum begins with the file's salt.
 *
 * Threads   use each object from one thread at a time.
 * Errors    make: TB_NOMEM, and those of tc_errno_rc(). A file that could not be made is removed.
 */
#ifndef TC_WAL_FILES_H
#define TC_WAL_FILES_H

#include "base/result.h"

/* Groups begin at multiples of this and have a multiple of it as length, as O_DIRECT requires. */
enum { TC_WAL_BLOCK = 4096, TC_WAL_NAME_BYTES = 24 };

struct tc_wal_files {
  int wal_fd;    /* the folder, borrowed */
  bool durable;  /* sync names, and bypass the page cache if the file system can */
  bool unsynced; /* files were removed, and the folder was not synced since */
  struct tc_wal_file {
    uint64_t start, bytes;
    bool poisoned; /* a write failed: do not reuse its blocks */
  } * items;       /* the last is the one that is written */
  size_t n, cap;
};

void tc_wal_files_init(struct tc_wal_files *files, int wal_fd, bool durable);
void tc_wal_files_fini(struct tc_wal_files *files);

void tc_wal_file_name(uint64_t start_lsn, char out[TC_WAL_NAME_BYTES]);

/* Adds an existing file, in rising order. */
TB_MUST tb_rc tc_wal_files_add(struct tc_wal_files *files, uint64_t start, uint64_t bytes);
/* Makes a file with allocated blocks and a durable name; unbuffered if the file system can. */
TB_MUST tb_rc tc_wal_files_make(struct tc_wal_files *files, uint64_t start, uint64_t bytes,
                                struct tb_diag *diag, int *out_fd);
void tc_wal_files_poison(struct tc_wal_files *files); /* the last file */
/* Removes the last file, which could not be used. After an error it stays in the list, to be removed later. */
void tc_wal_files_undo(struct tc_wal_files *files);
/* Removes all files that end at or before lsn, oldest first. Keeps the last one: recovery needs the snapshot at its begin. */
void tc_wal_files_trim(struct tc_wal_files *files, uint64_t lsn);

#endif
