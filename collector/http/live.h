/* SPDX-License-Identifier: Apache-2.0 */
/* Live events for HTTP readers: one ring of finished text for all of them.
 *
 * A reader is no more than a place in the ring: it costs nothing to be slow, and its next event is found
 * at once however much the ring holds. Once the ring has turned past that place it gets the number of events
 * that it missed (event "gap") and goes on with the oldest there is. Events are numbered; a reader that comes back
 * names the last one it had (Last-Event-ID) and gets what followed, as far as the ring still holds it. After a
 * restart of the daemon numbers start again, which an id shows: RUN-NUMBER.
 *
 * Memory    at most bytes_max of text for all readers together, and a pointer for each 128 bytes of it.
 * Threads   the loop's.
 * Errors    TB_NOMEM; an event that cannot be allocated is missed by all, and counts as such.
 */
#ifndef TC_HTTP_LIVE_H
#define TC_HTTP_LIVE_H

#include "base/buf.h"

struct tc_live;
struct tc_live_reader;

TB_MUST tb_rc tc_live_new(size_t bytes_max, uint64_t run, struct tc_live **out);
void tc_live_free(struct tc_live *live); /* no reader may be left; NULL is fine */

/* kind: the event's name; data: one line of JSON. */
void tc_live_publish(struct tc_live *live, const char *kind, const void *data, size_t n);

/* last_id: the reader's Last-Event-ID, "" for none. kinds: names separated by commas; TB_PROTOCOL: too
 * long a list. */
TB_MUST tb_rc tc_live_join(struct tc_live *live, const char *last_id, const char *kinds,
                           struct tc_live_reader **out);
void tc_live_leave(struct tc_live *live, struct tc_live_reader *reader); /* NULL is fine */
size_t tc_live_readers(const struct tc_live *live);
bool tc_live_reads(const struct tc_live_reader *reader, const char *kind);
bool tc_live_wanted(const struct tc_live *live, const char *kind); /* does any reader want it? */

/* The reader's next event, lent until the next call of any kind. False: nothing new. */
bool tc_live_next(struct tc_live *live, struct tc_live_reader *reader, const void **out_text,
                  size_t *out_len);

#endif
