/* SPDX-License-Identifier: Apache-2.0 */
/* A trace's generations, each prepared (online/trace/prepare.h) on a thread of its own while the one before is ordered.
 *
 *   while ((p = tk_ahead_next(ahead)) != NULL) {
 *     rc = to_reader_adopt(reader, p);
 *     while (rc == TB_AGAIN) rc = to_reader_run(reader, 4096);
 *     if (rc != TB_OK) break;
 *   }
 *
 * Memory    from the C library: two generations' tables, and their bytes unless the input's stay.
 * Threads   one of its own, from open to close; it alone calls the source. The rest from one thread.
 * Errors    what the source answers ends the trace as a fault of its own.
 */
#ifndef TK_TRACE_FILE_AHEAD_H
#define TK_TRACE_FILE_AHEAD_H

#include "online/trace/prepare.h"
#include "online/trace/pull.h"

struct tk_ahead;

/* flags: those of to_prepare_new(). TB_NOMEM: also if no thread can be started. */
TB_MUST tb_rc tk_ahead_open(unsigned flags, struct to_pull_source source, struct tk_ahead **out);
/* Waits for a running call of the source; accepts NULL. */
void tk_ahead_close(struct tk_ahead *ahead);

/* Waits for a generation, lent until the next call. Returns NULL after the last. */
struct to_prepared *tk_ahead_next(struct tk_ahead *ahead);

#endif
