/* SPDX-License-Identifier: Apache-2.0 */
/* The accounting of an archive, in batches and in bytes:
 *
 *     produced = archived + expired + lost                     stream whose end the agent reported
 *     produced = archived + expired + lost + open + spooled    live stream, at its last heartbeat
 *
 * The size of records that were damaged in the collector's own log is unknown: such a stream may lack up to one batch
 * for each of these records.
 *
 * Memory    one entry a meta, and one a live stream.
 * Threads   use each object from one thread at a time.
 * Errors    TB_NOMEM.
 */
#ifndef TC_ARCHIVE_AUDIT_LEDGER_H
#define TC_ARCHIVE_AUDIT_LEDGER_H

#include "archive/audit/audit.h"
#include "archive/meta.h"

struct tc_ledger {
  struct tc_ledger_entry *entries;
  size_t n, cap;
  struct tc_ledger_live *lives; /* sorted by stream */
  size_t nlives, lives_cap;
};

void tc_ledger_fini(struct tc_ledger *ledger); /* accepts a zeroed one */
/* Adds a live stream, whose metas count up to its cut. Call before tc_ledger_add(), in rising order of streams. */
TB_MUST tb_rc tc_ledger_live(struct tc_ledger *ledger, const unsigned char stream[16],
                             const struct tc_stream_cut *cut);
TB_MUST tb_rc tc_ledger_add(struct tc_ledger *ledger, const tc_meta *meta);
/* Excludes the stream from the check: one of its metas could not be read. */
TB_MUST tb_rc tc_ledger_skip(struct tc_ledger *ledger, const unsigned char stream[16]);

/* Reports each stream that does not add up; adds the sums of all to out. */
void tc_ledger_close(struct tc_ledger *ledger, void (*problem)(void *self, const char *text),
                     void *self, struct tc_audited *out);

#endif
