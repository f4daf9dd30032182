/* SPDX-License-Identifier: Apache-2.0 */
/* An agent without the agent library: its records are numbered, keep to the credit and are counted, so that the
 * accounts of its stream can be closed. The test chooses their content.
 *
 *     tt_sender_open() { tt_sender_add() | tt_sender_generation() }* tt_sender_sync() tt_sender_leave()
 *
 * Memory    some 50 KiB a sender.
 * Errors    false: the connection ended, or the collector refused; sender->peer.why, sender->refusal.
 */
#ifndef TT_SENDER_H
#define TT_SENDER_H

#include "support/peer.h"

enum { TT_SENDER_CHUNK_BYTES = 48 << 10, TT_SENDER_BATCH_MAX = 40 << 10 };

struct tt_sender {
  struct tt_peer peer;
  unsigned char stream[16];
  uint64_t seq, sent, credit, durable;
  uint64_t produced_batches, produced_bytes, lost_batches, lost_bytes; /* of produced */
  unsigned holds; /* 1 << each reason an ACK gave */
  int heartbeat_ms;
  char refusal[200];
  size_t n; /* not yet written */
  unsigned char chunk[TT_SENDER_CHUNK_BYTES + 1024];
};

/* Opens a new stream: HELLO sent, WELCOME received. */
bool tt_sender_open(struct tt_sender *sender, const struct tt_peer_terms *terms,
                    const char *service, const char *instance);
bool tt_sender_header(struct tt_sender *sender);
/* Sends a batch of `bytes` bytes that are not events: the archive stores them unchanged. */
bool tt_sender_batch(struct tt_sender *sender, uint64_t gen, unsigned bytes);
/* Sends the end of a generation of so many batches, each of so many bytes. */
bool tt_sender_end(struct tt_sender *sender, uint64_t gen, uint64_t batches, unsigned bytes);
bool tt_sender_generation(struct tt_sender *sender, uint64_t gen, unsigned batches, unsigned bytes);
/* Reports generation gen as lost, with so many batches that were never sent. */
bool tt_sender_loss(struct tt_sender *sender, uint64_t gen, unsigned batches, unsigned bytes);
bool tt_sender_end_stream(struct tt_sender *sender); /* CLOSE, with the counters */
bool tt_sender_flush(struct tt_sender *sender);      /* all is written */
bool tt_sender_sync(
    struct tt_sender *sender); /* all is acked, and the collector has the counters */
/* Leaves after the collector has read everything. */
void tt_sender_leave(struct tt_sender *sender);
void tt_sender_close(struct tt_sender *sender); /* at once */

#endif
