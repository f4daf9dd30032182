/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from the collector to messages: WELCOME, ACK, GOAWAY, REFUSE, SNAP (docs/PROTOCOL.md).
 *
 *   room() > TLS reads into it > add(n) > next() until TB_AGAIN > room() ...
 *
 * next() skips heartbeats, and control frames of a later minor version.
 *
 * Memory    frames of at most TA_INBOUND_BYTES; a message is valid until the next call of next().
 * Threads   one at a time.
 * Errors    next: TB_AGAIN: the next message is not whole yet. TB_PROTOCOL: the collector broke the protocol.
 */
#ifndef TA_NET_INBOUND_H
#define TA_NET_INBOUND_H

#include "base/arena.h"
#include "proto/frame.h"
#include "proto/frame.pb-c.h"

enum { TA_INBOUND_BYTES = 4096 };

struct ta_message {
  enum tp_kind kind; /* says which of these it is */
  union {
    const Tracecollect__V1__Welcome *welcome;
    const Tracecollect__V1__Ack *ack;
    const Tracecollect__V1__Goaway *goaway;
    const Tracecollect__V1__Refuse *refuse;
    const Tracecollect__V1__Snap *snap;
  };
};

struct ta_inbound {
  unsigned char bytes[TP_HEADER_BYTES + TA_INBOUND_BYTES];
  size_t at, n; /* bytes[at..n) are still to be read */
  struct tb_mem mem;
  struct tb_arena arena; /* of the last message */
};

void ta_inbound_init(struct ta_inbound *in);
void ta_inbound_fini(struct ta_inbound *in); /* accepts zeroed memory */
/* A new connection begins: drops bytes of the old one. */
void ta_inbound_clear(struct ta_inbound *in);
/* Returns the room for the next bytes, never 0 bytes after TB_AGAIN. */
unsigned char *ta_inbound_room(struct ta_inbound *in, size_t *out_n);
void ta_inbound_add(struct ta_inbound *in, size_t n);
TB_MUST tb_rc ta_inbound_next(struct ta_inbound *in, struct tb_diag *diag, struct ta_message *out);

#endif
