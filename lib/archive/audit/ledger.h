/* SPDX-License-Identifier: Apache-2.0 */
/* The accounting of an archive: what each stream produced, and where it went.
 *
 *     produced = archived + expired + lost                     of a stream whose end the agent reported
 *     produced = archived + expired + lost + open + spooled    of a living one, at its last heartbeat
 *
 * in batches and in bytes. Where records were damaged in the collector's own log their number of bytes is not
 * known: such a stream may lack as many batches as it lacks records.
 *
 * Memory    one entry a meta, and one a living stream.
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
  struct tc_ledger_live *lives; /* by stream */
  size_t nlives, lives_cap;
};

void tc_ledger_fini(struct tc_ledger *ledger); /* accepts a zeroed one */
/* A living stream, before any meta, in rising order of streams: what metas have is counted up to its cut. */
TB_MUST tb_rc tc_ledger_live(struct tc_ledger *ledger, const unsigned char stream[16],
                             const struct tc_stream_cut *cut);
TB_MUST tb_rc tc_ledger_add(struct tc_ledger *ledger, const tc_meta *meta);
/* A meta of this stream was not looked at: its sums mean nothing. */
TB_MUST tb_rc tc_ledger_skip(struct tc_ledger *ledger, const unsigned char stream[16]);

/* Reports each stream that does not add up; adds the others' sums to out. */
void tc_ledger_close(struct tc_ledger *ledger, void (*problem)(void *self, const char *text),
                     void *self, struct tc_audited *out);

#endif
