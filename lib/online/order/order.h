/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the events of one generation in an order the Go scheduler could have produced.
 *
 * Batches hold each thread's events in order. The thread with the earliest event goes first if the event
 * fits the state of the goroutines and procs (online/order/rules.def); if it is too early, the other threads
 * are tried by time. State is kept across generations.
 *
 * Memory    owns its state tables, never the generation.
 * Threads   use each object from one thread at a time.
 * Time      of events: nanoseconds on the trace's own clock, strictly rising.
 * Errors    TB_BROKEN: see diag. TB_BUDGET, TB_NOMEM from mem. TB_FUEL. The sink's.
 *           After an error only clear or free.
 */
#ifndef TO_ORDER_ORDER_H
#define TO_ORDER_ORDER_H

#include "online/event/tables.h"
#include "online/order/handler.h"
#include "online/order/limits.h"

struct to_order; /* layout in online/order/state.h */

TB_MUST tb_rc to__order_new(struct tb_mem *mem, const struct to_limits *limits,
                            struct to_event_sink sink, struct tb_diag *diag, struct to_order **out);
/* Uses only instructions that every processor has. */
void to__order_plain(struct to_order *order);
/* Continues after faults of annotations; the first one is stored. */
void to__order_past_annotations(struct to_order *order);
struct tb_diag *to__order_misannotated(struct to_order *order); /* rc is TB_OK if there is none */
TB_MUST tb_rc to__order_handle(struct to_order *order, const struct to_handler *handler);
void to__order_free(struct to_order *order);
/* Begins a new epoch: forgets everything but the number of Syncs. */
void to__order_clear(struct to_order *order);

/* Takes a complete generation and delivers its Sync with the first slice. */
TB_MUST tb_rc to__order_begin(struct to_order *order, struct to_generation *gen);
/* Delivers about events_max events, or fewer if they need many attempts. Returns TB_AGAIN if more are left, TB_OK if the
 * generation is done. */
TB_MUST tb_rc to__order_run(struct to_order *order, unsigned events_max);
/* Delivers the Sync without a generation, at the end of the trace and before a fault. */
TB_MUST tb_rc to__order_last_sync(struct to_order *order);

uint64_t to__order_events(const struct to_order *order); /* delivered */
uint64_t to__order_lone_region_ends(const struct to_order *order);
uint64_t to__order_written(const struct to_order *order); /* delivered events without added ones */

#endif
