/* SPDX-License-Identifier: Apache-2.0 */
/* A collector in the test's own process: real TLS on loopback, memory instead of a disk, and rules
 * for misbehaving. It checks all rules of PROTOCOL.md for agents; `breach` has the first violation.
 *
 * Memory    what it received, until free.
 * Threads   one of its own; every call is safe from the test's thread.
 */
#ifndef TT_COLLECTOR_H
#define TT_COLLECTOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TT_COLLECTOR_LOSSES = 64, TT_COLLECTOR_GENERATIONS = 4096 };

/* All zero: a collector without faults. */
struct tt_collector_rules {
  const char *certs; /* another folder than the one given at start */
  bool no_alpn;
  uint64_t credit_bytes;  /* window; default 4 MiB */
  unsigned heartbeat_ms;  /* default 5000 */
  bool no_acks;           /* accepts records, but sends no ack and no credit */
  bool mute;              /* reads, but sends nothing, not even heartbeats */
  bool deaf;              /* after WELCOME reads nothing */
  uint64_t hang_up_after; /* records on each connection, of which the last is not acked */
  int refuse_code;        /* answers HELLO with REFUSE */
  bool refuse_permanent;
  unsigned goaway_wait_ms; /* answers the first record with GOAWAY, acks and closes */
  uint64_t ack_ahead;      /* acks that many records more than it received */
  bool forget;             /* WELCOME says that nothing is durable */
};

struct tt_collector_loss {
  uint64_t seq, first_gen, last_gen, batches, bytes, sent_batches, sent_bytes;
  int reason;
};

struct tt_collector_seen {
  unsigned connections;     /* welcomed */
  uint64_t records, resent; /* new ones; duplicates */
  uint64_t batches, batch_bytes;
  uint64_t generations;    /* valid GENENDs */
  uint64_t max_on_the_way; /* record bytes received beyond what was acked */
  bool closed;             /* CLOSE came */
  uint64_t closed_produced_batches, closed_lost_batches;
  char service[65], instance[65], stream[33];
  char breach[200]; /* of the protocol; empty: none */
  unsigned n_losses;
  struct tt_collector_loss losses[TT_COLLECTOR_LOSSES];
};

struct tt_collector;

/* port 0: a free one. */
struct tt_collector *tt_collector_new(const char *certs, int port);
void tt_collector_free(struct tt_collector *collector); /* accepts NULL */
int tt_collector_port(const struct tt_collector *collector);
const char *tt_collector_address(const struct tt_collector *collector); /* "127.0.0.1:PORT" */

/* Sets the rules for later connections, and (acks, mute, deaf, credit) for the open one. */
void tt_collector_rule(struct tt_collector *collector, struct tt_collector_rules rules);
/* Stops listening and drops the connection, or listens again on the same port. */
void tt_collector_down(struct tt_collector *collector);
void tt_collector_up(struct tt_collector *collector);

void tt_collector_seen(struct tt_collector *collector, struct tt_collector_seen *out);
/* Returns the trace as a fetch would: header and the batches of all generations that ended. */
size_t tt_collector_trace(struct tt_collector *collector,
                          unsigned char **out); /* the caller frees *out */

/* Waits until cond is true of what was seen; false after TT_PATIENCE_S. */
bool tt_collector_wait(struct tt_collector *collector,
                       bool (*cond)(const struct tt_collector_seen *seen, uint64_t arg),
                       uint64_t arg);

#endif
