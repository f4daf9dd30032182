/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the log back: every valid record in order, and what is wrong with the rest.
 *
 * Reading changes nothing. A record is invalid if its magic, position or checksum is not right. If a later group of
 * the same file was begun after it (or a later file's snapshot counts it), it had been durable:
 * corruption, it is skipped and everything later kept. Otherwise it is the torn tail of the last group,
 * which was never acked: it and what follows is left out.
 *
 * A sector that cannot be read counts as zeros: the records in it are damaged, all others are kept. Files are read, not
 * mapped: a read error under a mapping would be a SIGBUS, which ends the process, and again at each start.
 *
 * Memory    heads of all records, and one window of the files: 1 MiB, or the largest record.
 * Errors    TB_IO, TB_NOMEM; TB_UNSUPPORTED: a critical record of a kind this program does not know.
 */
#ifndef TC_WAL_SCANNER_H
#define TC_WAL_SCANNER_H

#include "collector/wal/format.h"

struct tc_log_entry {
  struct tc_log_head head;
  uint32_t payload_crc;
  uint32_t file; /* of files */
};

struct tc_log_scan_file {
  uint64_t start, bytes;
  uint64_t data;   /* of the bytes: what was ever written, holes behind it left out */
  uint64_t end;    /* lsn behind what counts of it */
  uint64_t asked;  /* of data: so much was requested from the disk already */
  uint64_t proven; /* lsn up to which a later group or file says that it was durable */
  uint32_t salt;
  bool readable; /* its snapshot is valid */
};

struct tc_log_window {
  unsigned char *bytes;
  size_t len, cap;
  uint64_t file_start, at; /* where the bytes are from */
  int fd;                  /* of that file; -1: none */
};

struct tc_log_scan {
  int wal_fd; /* the caller's; open until tc_log_scan_free() */
  struct tc_log_window window;
  uint64_t unreadable; /* blocks of 4 KiB; the first one: */
  uint64_t unreadable_file, unreadable_at;
  struct tc_log_entry *entries;
  size_t nentries, entries_cap;
  struct tc_log_scan_file *files;
  size_t nfiles, files_cap;
  uint64_t next_lsn;     /* where a new file may begin */
  uint64_t previous_end; /* what of the last file counts */
  uint64_t corrupt;      /* damaged places, each of one or more records */
  uint64_t torn_bytes;
};

TB_MUST tb_rc tc_log_scan(int wal_fd, struct tb_diag *diag, struct tc_log_scan *out);
/* The last group, which counts but is not proven, may have been on its way only when the last run died: it is
 * written once more and synced, the files' names too, before anything is reported as durable. Written, because a
 * sync may have failed and would not try again. Before anything is changed by what the log says, too: a power cut
 * could take a file that says where the one before it ends, and a group that was given up would count again. */
TB_MUST tb_rc tc_log_scan_to_disk(int wal_fd, const struct tc_log_scan *scan, struct tb_diag *diag);
/* Lent until the next call that reads (has_payload() says whether it does). TB_CORRUPT: it could be read before and
 * cannot now. */
TB_MUST tb_rc tc_log_scan_payload(struct tc_log_scan *scan, const struct tc_log_entry *entry,
                                  struct tb_diag *diag, const unsigned char **out);
/* The next payload comes out of what was read last: what is lent stays. */
bool tc_log_scan_has_payload(const struct tc_log_scan *scan, const struct tc_log_entry *entry);
void tc_log_scan_free(struct tc_log_scan *scan); /* accepts a zeroed one */

#endif
