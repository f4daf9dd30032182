/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of one stream and one day. They are kept longer than the traces.
 *
 *     STATE/reports/YYYY-MM-DD/<stream32>.reports
 *
 * A file is a sequence of records, oldest first; numbers are little-endian:
 *
 *     "TCR1" | payload's length u32 | payload's CRC32C u32 | head's CRC32C u32 (of all other fields) | from u64 |
 *     until u64 | back u64 | payload
 *
 * from and until are ns since 1970 on the program's wall clock. The payload is a Zstandard frame of a ReportReply
 * (proto/archive.proto), with a report of each kind. Reports of one stream are similar, so most records are compressed
 * against an earlier one, their base, whose unpacked payload is the frame's prefix. back is the distance in bytes to the
 * start of the base; 0: the record is a base itself, as at least each 32nd is.
 *
 * The next writer cuts off an incomplete record at the end (power failure); a reader stops before it.
 *
 * Threads   one writer at a time per file; any number of readers at the same time.
 * Errors    TB_IO, TB_UNREADABLE: diag has file and reason; TB_NOMEM.
 */
#ifndef TC_ARCHIVE_REPORT_FILE_H
#define TC_ARCHIVE_REPORT_FILE_H

#include "base/buf.h"

enum { TC_REPORT_RECORD_MAX = 4 << 20 }; /* bytes of a payload, packed or unpacked */

struct tc_report_record {
  uint64_t from_ns, until_ns;
  const void *reply; /* a packed ReportReply */
  size_t len;
};

/* Appends a record, without fsync. TB_BUDGET: the record is too large. */
TB_MUST tb_rc tc_report_file_append(int dir_fd, const char *name,
                                    const struct tc_report_record *record, struct tb_diag *diag);
/* Passes the records that overlap from_ns to until_ns to take, in order; each is lent for the call. A code of take other
 * than TB_OK ends the walk. TB_NOTFOUND: no such file. *out_damaged counts records that were skipped because they or
 * their base are damaged. */
TB_MUST tb_rc tc_report_file_read(int dir_fd, const char *name, uint64_t from_ns, uint64_t until_ns,
                                  void *self,
                                  tb_rc (*take)(void *self, const struct tc_report_record *record),
                                  uint64_t *out_damaged, struct tb_diag *diag);

#endif
