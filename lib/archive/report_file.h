/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of one stream and one day: what its figures were, stretch after stretch, when its traces have gone.
 *
 *     STATE/reports/YYYY-MM-DD/<stream32>.reports
 *
 * Records stand one behind the other, oldest first; numbers are little-endian:
 *
 *     "TCR1" | bytes of the payload u32 | its CRC32C u32 | of the head but for this field, CRC32C u32 | from u64 | until u64 | back u64 | payload
 *
 * from and until are ns since 1970 on the program's wall clock. The payload is a Zstandard frame of a ReportReply (proto/archive.proto): a
 * report of each kind. back is 0, or how many bytes before this record its base begins: a record with back 0, whose unpacked payload is the
 * frame's prefix. Reports of one stream are alike, so most of a record is in its base. At least each 32nd record is a base.
 *
 * A record that was being written when the power went is cut off by the next writer; a reader ends before it.
 *
 * Threads   a file has one writer at a time; any number of readers beside it.
 * Errors    TB_IO, TB_UNREADABLE: diag has file and reason; TB_NOMEM.
 */
#ifndef TC_ARCHIVE_REPORT_FILE_H
#define TC_ARCHIVE_REPORT_FILE_H

#include "base/buf.h"

enum { TC_REPORT_RECORD_MAX = 4 << 20 }; /* bytes of a payload, packed and unpacked */

struct tc_report_record {
  uint64_t from_ns, until_ns;
  const void *reply; /* a packed ReportReply */
  size_t len;
};

/* Behind the last whole record; the kernel writes it when it likes. TB_BUDGET: it is too large. */
TB_MUST tb_rc tc_report_file_append(int dir_fd, const char *name,
                                    const struct tc_report_record *record, struct tb_diag *diag);
/* Those that meet the stretch, in order; lent for the call. TB_NOTFOUND: there is no such file. take's codes end it; *out_damaged counts
 * records that were passed over, as they or their base fail their checksum. */
TB_MUST tb_rc tc_report_file_read(int dir_fd, const char *name, uint64_t from_ns, uint64_t until_ns,
                                  void *self,
                                  tb_rc (*take)(void *self, const struct tc_report_record *record),
                                  uint64_t *out_damaged, struct tb_diag *diag);

#endif
