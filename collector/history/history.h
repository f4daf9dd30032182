/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that stay when the traces have gone: of each stream, every reports.every of its time, one of each kind.
 *
 *   loops ──records──> a line ──thread──> STATE/reports/DAY/<stream>.reports (archive/report_file.h)
 *   readers <────────────────────────────┘
 *
 * Days that are older than reports.age go, and the oldest ones where all together are larger than reports.bytes.
 *
 * Memory    what waits for the disk, at most TC_HISTORY_WAITING_MAX; a record beyond that is left out, counted.
 * Threads   add, read: any. The rest: the main thread's.
 * Errors    TB_IO: diag has file and reason; TB_NOMEM; TB_BUDGET: it is left out.
 */
#ifndef TC_HISTORY_HISTORY_H
#define TC_HISTORY_HISTORY_H

#include "archive/report_file.h"
#include "config/table.h"
#include "proto/names.h"

enum { TC_HISTORY_WAITING_MAX = 16 << 20 };

struct tc_history;

TB_MUST tb_rc tc_history_open(int state_fd, const struct tc_config *config, struct tb_diag *diag,
                              struct tc_history **out);
TB_MUST tb_rc tc_history_start(struct tc_history *h);  /* its thread */
void tc_history_stop(struct tc_history *h);            /* writes what waits; NULL is fine */
void tc_history_free(struct tc_history *h);            /* NULL is fine */
uint64_t tc_history_turns(const struct tc_history *h); /* at least one a second; any thread */

/* A copy of the record, for the disk. */
TB_MUST tb_rc tc_history_add(struct tc_history *h, const unsigned char stream[TC_STREAM_BYTES],
                             const struct tc_report_record *record);
/* Those on the disk that meet the stretch, in order; lent for the call. take's codes end it. *out_damaged counts those that cannot be
 * read. */
TB_MUST tb_rc tc_history_read(struct tc_history *h, const unsigned char stream[TC_STREAM_BYTES],
                              uint64_t from_ns, uint64_t until_ns, void *self,
                              tb_rc (*take)(void *self, const struct tc_report_record *record),
                              uint64_t *out_damaged, struct tb_diag *diag);

#endif
