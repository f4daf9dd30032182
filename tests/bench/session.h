/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the benches that send a trace as a program would: the trace in memory, a stream to a collector, the trace's
 * batches one by one. Any failure prints its reason and ends the program.
 */
#ifndef TT_BENCH_SESSION_H
#define TT_BENCH_SESSION_H

#include "base/mem.h"
#include "traceagent.h"
#include "wire/split.h"

enum {
  SESSION_SPOOL_BYTES = 16 << 20,
  SESSION_CREDIT_BYTES = 4 << 20, /* the collector's */
  SESSION_WAIT_MS = 60000,
};

struct session {
  ta_forward *forward;
  unsigned char
      *bytes; /* of the trace: memory of our own, so that no write pays for a page of the file */
  size_t n, at;
  struct tb_mem mem;
  struct tw_split split;
};

_Noreturn void session_fail(const char *what, const char *why);

/* Returns once the collector has accepted the stream, so that the handshake is not measured with the data. */
void session_open(struct session *s, const char *server, const char *certs, const char *trace);
/* Closes the session once all is acked. */
void session_close(struct session *s);

/* Gets the next piece as Go's runtime hands it on, lent until the next call. Returns false at the
 * end. */
bool session_next(struct session *s, struct tw_item *out);

/* Waits until no more than so many bytes are unacked, without asking the agent for a wake-up. */
void session_wait_for_room(struct session *s, uint64_t bytes);

#endif
