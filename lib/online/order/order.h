/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the events of one generation in an order the Go scheduler could have produced.
 *
 * Threads' events stand in batches, each thread's own in order. The thread with the earliest event goes
 * first if the event fits the state of the goroutines and procs (online/order/rules.def); if it comes too
 * early, the others are tried by time. State lives across generations.
 *
 * Memory    owns its state tables, never the generation.
 * Threads   use each object from one thread at a time.
 * Time      out: nanoseconds on the trace's own clock, strictly rising.
 * Errors    TB_BROKEN: see diag. TB_BUDGET, TB_NOMEM: mem. TB_FUEL. The sink's answer.
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
/* Only instructions that every processor has. */
void to__order_plain(struct to_order *order);
/* Faults of annotations do not end the order: the first one is noted. */
void to__order_past_annotations(struct to_order *order);
struct tb_diag *to__order_misannotated(struct to_order *order); /* its rc TB_OK: there is none */
TB_MUST tb_rc to__order_handle(struct to_order *order, const struct to_handler *handler);
void to__order_free(struct to_order *order);
/* A new epoch: everything is forgotten but the number of Syncs. */
void to__order_clear(struct to_order *order);

/* Takes a complete generation and delivers its Sync with the first slice. */
TB_MUST tb_rc to__order_begin(struct to_order *order, struct to_generation *gen);
/* Delivers about events_max events, or as many as that much work allows. TB_AGAIN: more left. TB_OK: the generation is
 * done. */
TB_MUST tb_rc to__order_run(struct to_order *order, unsigned events_max);
/* The Sync that belongs to no generation: at the end, and before a fault. */
TB_MUST tb_rc to__order_last_sync(struct to_order *order);

uint64_t to__order_events(const struct to_order *order); /* delivered */
uint64_t to__order_lone_region_ends(const struct to_order *order);
uint64_t to__order_written(const struct to_order *order); /* of them, what stands in the trace */

#endif
