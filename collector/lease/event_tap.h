/* SPDX-License-Identifier: Apache-2.0 */
/* Where one loop's ordered events are looked at for leases.
 *
 *   understand ──events──> tap ──bundles──> leases (their thread)
 *                           └──<──orders───────┘
 *
 * A stream that no lease asks for has no struct tc_tap_event: its events pass a NULL check a slice. A lease's
 * events are packed at once, since strings and stacks are gone with their generation, and leave as bundles of
 * some 128 KiB and at the generation's end. Nothing waits: a bundle that finds no room on the
 * way is dropped, and the next one says how many events it held.
 *
 * Memory    bundles being filled and what durations need (30 KiB a stream, 120 bytes a goroutine): at most TC_EVENT_TAP_BYTES_MAX.
 * Threads   all calls on the loop's thread.
 * Errors    new: TB_NOMEM. Nothing else leaves here: what has no memory is counted as lost.
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
/* Tries again to send what had no room. */
void tc_event_tap_tick(struct tc_event_tap *tap);

struct tc_tap_event;

struct tc_tap_event_about {    /* the stream; lent until tc_tap_event_free() */
  const unsigned char *stream; /* TC_STREAM_BYTES */
  const char *service, *instance;
};

/* A generation of a stream begins: *tapped is made, changed or freed as leases are now. NULL: none wants
 * it. tap NULL: there never are any. */
void tc_event_tap_begin(struct tc_event_tap *tap, const struct tc_tap_event_about *about,
                        struct tc_tap_event **tapped);
void tc_tap_event_events(struct tc_tap_event *t, const struct to_generation *gen,
                         const struct to_event *events, size_t n);
/* It has ended, or broke. */
void tc_tap_event_end(struct tc_tap_event *t);
/* Ordering begins again: open spans are void. */
void tc_tap_event_epoch(struct tc_tap_event *t);
/* One instant on both clocks, for generations that carry no clock. */
void tc_tap_event_clock(struct tc_tap_event *t, to_ns trace_ns, uint64_t wall_ns);
void tc_tap_event_free(struct tc_tap_event *t); /* NULL is fine */

#endif
