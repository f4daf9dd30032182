/* SPDX-License-Identifier: Apache-2.0 */
/* An asynchronous name look-up.
 *
 * getaddrinfo() may wait for a name server for half a minute. So it runs on a thread of its own: the sender continues
 * meanwhile, and neither fork() nor exit() nor close() waits for it. An abandoned look-up ends by itself.
 *
 * A numeric address needs no look-up: begin() returns it at once.
 *
 * Limitation: a child that is forked in the microseconds in which the resolver holds one of its locks cannot look up
 * names itself. This holds for every program whose threads look up names.
 *
 * Memory    one block, freed by the last of both sides.
 * Threads   begin, poll and give_up on one; each look-up has a thread of its own.
 * Errors    as ta_dial_find(). TB_IO: no thread.
 */
#ifndef TA_NET_LOOKUP_H
#define TA_NET_LOOKUP_H

#include "agent/net/dial.h"

enum { TA_LOOKUP_POLL_MS = 5 };

struct ta_lookup; /* a look-up in progress */

/* TB_OK: *out is filled, *out_lookup is NULL. TB_AGAIN: *out_lookup is in progress. */
TB_MUST tb_rc ta_lookup_begin(const char *server, struct tb_diag *diag, struct ta_addresses *out,
                              struct ta_lookup **out_lookup);
/* TB_AGAIN: not yet. Any other result is final, and the look-up is freed. */
TB_MUST tb_rc ta_lookup_poll(struct ta_lookup **lookup, struct tb_diag *diag,
                             struct ta_addresses *out);
void ta_lookup_give_up(struct ta_lookup **lookup); /* *lookup may be NULL */

#endif
