/* SPDX-License-Identifier: Apache-2.0 */
/* Live events for HTTP readers: one ring of finished text for all readers.
 *
 * A reader is only a place in the ring. If the ring has dropped events at that place, the reader gets the number of events
 * that it missed (event "gap") and continues with the oldest event in the ring. Events are numbered: a reader that
 * reconnects sends the number of its last event (Last-Event-ID) and continues after it, if the ring still has the events.
 * Numbers begin again after a restart of the daemon; an id is START-NUMBER.
 *
 * Memory    at most bytes_max of text for all readers together, and a pointer for each 128 bytes of it.
 * Threads   the loop only.
 * Errors    TB_NOMEM; an event that cannot be allocated is a gap for all readers.
 */
#ifndef TC_HTTP_LIVE_H
#define TC_HTTP_LIVE_H

#include "base/buf.h"

struct tc_live;
struct tc_live_reader;

TB_MUST tb_rc tc_live_new(size_t bytes_max, uint64_t run, struct tc_live **out);
void tc_live_free(struct tc_live *live); /* after all readers have left; accepts NULL */

/* kind: the event's name; data: one line of JSON. */
void tc_live_publish(struct tc_live *live, const char *kind, const void *data, size_t n);

/* last_id: the reader's Last-Event-ID or "". kinds: names separated by commas. TB_PROTOCOL: kinds is too long. */
TB_MUST tb_rc tc_live_join(struct tc_live *live, const char *last_id, const char *kinds,
                           struct tc_live_reader **out);
void tc_live_leave(struct tc_live *live, struct tc_live_reader *reader); /* accepts NULL */
size_t tc_live_readers(const struct tc_live *live);
bool tc_live_reads(const struct tc_live_reader *reader, const char *kind);
bool tc_live_wanted(const struct tc_live *live, const char *kind); /* by any reader */

/* Returns the reader's next event, lent until the next call of any kind. Returns false if there is none. */
bool tc_live_next(struct tc_live *live, struct tc_live_reader *reader, const void **out_text,
                  size_t *out_len);

#endif
