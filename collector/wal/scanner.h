/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the log back: every valid record in order, and what is wrong with the rest. Changes no file.
 *
 * A record is invalid if its magic, position or checksum is wrong. If a later group of the same file was begun after it (or
 * a later file's snapshot counts it), the record had been durable: it is corrupt and skipped, and all later records count.
 * Otherwise it is the torn tail of the last group, which was never acked: it and all that follows is left out.
 *
 * A sector that cannot be read counts as zeros: only the records in it are damaged. Files are read, not mapped: a read
 * error in a mapping is a SIGBUS, which would end the process at each start.
 *
 * Memory    heads of all records, and one window of the files: 1 MiB, or the largest record.
 * Errors    TB_IO, TB_NOMEM; TB_UNSUPPORTED: a critical record of a kind this program does not know.
 */
#ifndef TC_WAL_SCANNER_H
#define TC_WAL_SCANNER_H

#include "collector/wal/format.h"

struct tc_wal_entry {
  struct tc_wal_head head;
  uint32_t payload_crc;
  uint32_t file; /* index into files */
};

struct tc_wal_scan_file {
  uint64_t start, bytes;
  uint64_t data;   /* bytes up to the hole at the end */
  uint64_t end;    /* end lsn of the valid part */
  uint64_t asked;  /* bytes that readahead was requested for */
  uint64_t proven; /* lsn up to which it was durable, according to a later group or file */
  uint32_t salt;
  bool readable; /* its snapshot is valid */
};

struct tc_wal_window {
  unsigned char *bytes;
  size_t len, cap;
  uint64_t file_start, at; /* source of the bytes: file and offset */
  int fd;                  /* that file; -1: none */
};

struct tc_wal_scan {
  int wal_fd; /* the caller's; open until tc_wal_scan_free() */
  struct tc_wal_window window;
  uint64_t unreadable;                     /* number of blocks of 4 KiB */
  uint64_t unreadable_file, unreadable_at; /* the first one */
  struct tc_wal_entry *entries;
  size_t nentries, entries_cap;
  struct tc_wal_scan_file *files;
  size_t nfiles, files_cap;
  uint64_t next_lsn;     /* start of a new file */
  uint64_t previous_end; /* end of the last file's valid part */
  uint64_t corrupt;      /* number of damaged places, each of one or more records */
  uint64_t torn_bytes;
};

TB_MUST tb_rc tc_wal_scan(int wal_fd, struct tb_diag *diag, struct tc_wal_scan *out);
/* Writes the last group again and syncs it and the files' names. The group is valid but may not have reached the disk before
 * the crash. (A sync alone is not enough: after a failed one it would not write again.) Must be called before anything is
 * reported as durable, and before anything is changed according to the log: after a power failure a file could be
 * missing that names the end of the one before, and a group that was given up would count again. */
TB_MUST tb_rc tc_wal_scan_to_disk(int wal_fd, const struct tc_wal_scan *scan, struct tb_diag *diag);
/* Reads a payload, valid until the next call that reads (see tc_wal_scan_has_payload()). TB_CORRUPT: it was readable
 * during the scan and no longer is. */
TB_MUST tb_rc tc_wal_scan_payload(struct tc_wal_scan *scan, const struct tc_wal_entry *entry,
                                  struct tb_diag *diag, const unsigned char **out);
/* Returns whether the payload is in the window already: reading it keeps earlier payloads valid. */
bool tc_wal_scan_has_payload(const struct tc_wal_scan *scan, const struct tc_wal_entry *entry);
void tc_wal_scan_free(struct tc_wal_scan *scan); /* accepts a zeroed one */

#endif
