/* SPDX-License-Identifier: Apache-2.0 */
/* A trace's generations, each prepared (online/trace/prepare.h) on a thread of its own while the one before is ordered.
 *
 *   while ((p = tk_ahead_next(ahead)) != NULL) {
 *     rc = to_reader_adopt(reader, p);
 *     while (rc == TB_AGAIN) rc = to_reader_run(reader, 4096);
 *     if (rc != TB_OK) break;
 *   }
 *
 * Memory    from the C library: two generations' tables, and their bytes where those do not stay.
 * Threads   one of its own, from open to close; it alone calls the source. The rest from one thread.
 * Errors    what the source answers ends the trace as a fault of its own.
 */
#ifndef TK_TRACE_FILE_AHEAD_H
#define TK_TRACE_FILE_AHEAD_H

#include "online/trace/prepare.h"
#include "online/trace/pull.h"

struct tk_ahead;

/* flags as those of to_prepare_new(). TB_NOMEM: also when there can be no other thread. */
TB_MUST tb_rc tk_ahead_open(unsigned flags, struct to_pull_source source, struct tk_ahead **out);
/* Waits for the source's call in progress, if there is one; accepts NULL. */
void tk_ahead_close(struct tk_ahead *ahead);

/* Waits; lent until the next call. NULL: the one before was the last. */
struct to_prepared *tk_ahead_next(struct tk_ahead *ahead);

#endif
