/* SPDX-License-Identifier: Apache-2.0 */
/* Selects one loop's ordered events for leases.
 *
 *   analysis ──events──> tap ──bundles──> leases (their thread)
 *                         └──<──orders───────┘
 *
 * A stream that no lease selects has no struct tc_tap_event: it costs a NULL check a slice. Selected events are packed
 * at once, since strings and stacks are freed with their generation, and sent in bundles of some 128 KiB and at the
 * generation's end. Nothing waits: a bundle that cannot be queued is dropped, and the next one says how many events
 * were lost.
 *
 * Memory    bundles being filled, and durations (30 KiB a stream, 120 bytes a goroutine): at most TC_EVENT_TAP_BYTES_MAX.
 * Threads   all calls on the loop's thread.
 * Errors    new: TB_NOMEM. No other function fails: events that cannot be allocated are counted as lost.
 */
#ifndef TC_LEASE_EVENT_TAP_H
#define TC_LEASE_EVENT_TAP_H

#include "collector/lease/broker.h"
#include "online/event/generation.h"

enum { TC_EVENT_TAP_BYTES_MAX = 128 << 20 };

struct tc_event_tap;

TB_MUST tb_rc tc_event_tap_new(struct tc_leases *leases, unsigned loop, struct tc_event_tap **out);
void tc_event_tap_free(struct tc_event_tap *tap); /* after its last stream; NULL is fine */

void tc_event_tap_order(struct tc_event_tap *tap, struct tc_event_tap_order *order); /* owns it */
/* Retries sends for which there was no room. */
void tc_event_tap_tick(struct tc_event_tap *tap);

struct tc_tap_event;

struct tc_tap_event_about {    /* a stream; lent until tc_tap_event_free() */
  const unsigned char *stream; /* TC_STREAM_BYTES */
  const char *service, *instance;
};

/* Begins a generation of a stream: creates, changes or frees *tapped to match the current leases. *tapped is NULL if no lease
 * selects the stream. tap may be NULL if leases are off. */
void tc_event_tap_begin(struct tc_event_tap *tap, const struct tc_tap_event_about *about,
                        struct tc_tap_event **tapped);
void tc_tap_event_events(struct tc_tap_event *t, const struct to_generation *gen,
                         const struct to_event *events, size_t n);
/* Call when the generation has ended, even if broken. */
void tc_tap_event_end(struct tc_tap_event *t);
/* Call when ordering begins anew: open spans are void. */
void tc_tap_event_epoch(struct tc_tap_event *t);
/* One instant on both clocks, for generations without a clock snapshot. */
void tc_tap_event_clock(struct tc_tap_event *t, to_ns trace_ns, uint64_t wall_ns);
void tc_tap_event_free(struct tc_tap_event *t); /* NULL is fine */

#endif
