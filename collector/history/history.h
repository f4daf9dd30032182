/* SPDX-License-Identifier: Apache-2.0 */
/* The report archive: reports that outlive their traces, one of each kind and stream for every reports.every of its time.
 *
 *   loops ──records──> a line ──thread──> STATE/reports/DAY/<stream>.reports (archive/report_file.h)
 *   readers <────────────────────────────┘
 *
 * Deletes days that are older than reports.age, and the oldest ones while all together are larger than reports.bytes.
 *
 * Memory    records that wait for the disk, at most TC_HISTORY_WAITING_MAX bytes; further ones are dropped and counted.
 * Threads   add, read: any. Others: the main thread.
 * Errors    TB_IO: diag has file and reason; TB_NOMEM; TB_BUDGET: the record was dropped.
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
void tc_history_stop(struct tc_history *h);            /* writes waiting records; NULL is fine */
void tc_history_free(struct tc_history *h);            /* NULL is fine */
uint64_t tc_history_turns(const struct tc_history *h); /* at least one a second; any thread */

/* Copies the record and queues it for the disk. */
TB_MUST tb_rc tc_history_add(struct tc_history *h, const unsigned char stream[TC_STREAM_BYTES],
                             const struct tc_report_record *record);
/* Calls take() in order for each record on the disk that overlaps [from_ns, until_ns]; the record is valid during the call, and an
 * error from take() ends the reading. *out_damaged: number of unreadable records. */
TB_MUST tb_rc tc_history_read(struct tc_history *h, const unsigned char stream[TC_STREAM_BYTES],
                              uint64_t from_ns, uint64_t until_ns, void *self,
                              tb_rc (*take)(void *self, const struct tc_report_record *record),
                              uint64_t *out_damaged, struct tb_diag *diag);

#endif
