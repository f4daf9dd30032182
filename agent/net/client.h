/* SPDX-License-Identifier: Apache-2.0 */
/* The sender: one thread that keeps a connection to the collector and empties the spool into it.
 *
 *   connecting > securing > greeting > streaming > (leaving) > waiting > connecting ...
 *
 * ta_client_run() is that thread's body; it returns when everything is acked after CLOSE, when the collector
 * refused for good, or when stopped. Credit is exact: a connection never sends more record bytes than the collector's
 * mark permits. A peer that is silent for almost three heartbeats counts as lost. If the collector no longer has records
 * that it acked, the client sends a new stream (ta_spool_restart). Tries are spaced by full jitter, 100 ms doubling to
 * 30 s. A failed check, here or in a call of the writer's, ends the stream, so that the host keeps running.
 *
 * Memory    the client itself; frames from the collector are at most TA_INBOUND_BYTES.
 * Threads   run() on one thread; stop(), wake() and status() from any.
 * Time      monotonic for every timer.
 * Errors    none returned: every error leads to another try; status() has its text.
 */
#ifndef TA_NET_CLIENT_H
#define TA_NET_CLIENT_H

#include "agent/host/rate.h"
#include "agent/net/hold.h"
#include "agent/net/inbound.h"
#include "agent/net/lookup.h"
#include "agent/net/report.h"
#include "agent/net/tls.h"
#include "agent/persist/writer.h"
#include "agent/spool/spool.h"
#include "base/check.h"

#define TA_CLIENT_INPUTS(X)                                                                        \
  X(START)                                                                                         \
  X(CONNECTED)                                                                                     \
  X(SECURED)                                                                                       \
  X(WELCOME)                                                                                       \
  X(GOAWAY)                                                                                        \
  X(LOST)                                                                                          \
  X(TIMER)                                                                                         \
  X(REFUSED)                                                                                       \
  X(DONE)

#define TA_CODE(name) TA_IN_##name,
enum ta_client_input { TA_CLIENT_INPUTS(TA_CODE) TA_CLIENT_INPUT_COUNT };
#undef TA_CODE

struct ta_client_config {
  const char *server;
  struct ta_tls_files files;
  const char *service, *instance;
  uint64_t rate_bytes_s; /* 0: no cap */
  uint64_t first_try_ns; /* time of the first try to connect */
  bool refusal_ends; /* not only a permanent REFUSE ends the stream, a refused certificate, too */
  void (*log)(void *self, int level, const char *text);
  void *log_self;
};

/* A refused SNAP, to be answered once all granted bytes are sent. */
struct ta_snaps {
  uint64_t refused_id; /* 0: none */
  bool busy;           /* reason: true: too many snaps; false: the agent does not record */
};

struct ta_client {
  struct ta_client_config config;
  struct ta_spool *spool;
  struct ta_spool_writer *disk; /* the spool on disk, or NULL */
  struct tb_keeper keeper;      /* for the writer's and the sender's checks */
  uint64_t started_wall_ns;     /* start of the stream */
  int wake_fd;                  /* -1: there is no thread to wake yet */
  atomic_bool stop;
  atomic_uint hurried;       /* number of calls that wait for acks */
  atomic_ullong snap;        /* in ns, agent/spool/wanted.h */
  void (*_Atomic cut)(void); /* ends the generation soon, or NULL */
  struct ta_snaps snaps;

  enum ta_client_state state;
  uint64_t until_ns;        /* of this state; UINT64_MAX: no limit */
  struct tb_diag diag;      /* of this connection */
  struct ta_lookup *lookup; /* look-up in progress while connecting, else NULL */
  struct ta_addresses addresses;
  int fd;
  bool fd_full; /* the socket is full */
  bool flows;   /* records may be sent: WELCOME was received */
  bool refused; /* by a REFUSE for good */
  bool held;    /* a record waits for credit or rate */
  struct ta_tls *tls;
  unsigned char received[16 << 10]; /* bytes from the socket, still encrypted */
  struct ta_inbound inbound;
  uint64_t random;
  unsigned tries; /* since the last welcome */

  uint64_t credit_bytes, sent_bytes; /* on this connection */
  uint64_t heartbeat_ns, beat_ns, heard_ns, trim_ns;
  uint64_t said_losses,
      say_losses_ns;  /* lost generations that log() has reported; earliest time of the next line */
  uint64_t rest_ns;   /* end of this rest, 0: not resting */
  uint64_t away_ns;   /* earliest time of the next try, from GOAWAY */
  uint64_t acked_seq; /* on this connection */
  struct ta_hold hold;
  struct ta_rate_cap rate;
  struct ta_report report; /* the identity of the stream is in its status */
};

TB_MUST tb_rc ta_client_init(struct ta_client *c, const struct ta_client_config *config,
                             struct ta_spool *spool);
/* Creates what only a thread needs; call before run(), possibly long after init(). TB_IO: no descriptor. */
TB_MUST tb_rc ta_client_open(struct ta_client *c);
/* Continues an existing stream; call before run(). */
void ta_client_is(struct ta_client *c, const unsigned char stream[16], uint64_t started_wall_ns);
/* Keeps the spool on disk, too; call before run(). */
void ta_client_keep(struct ta_client *c, struct ta_spool_writer *disk);
void ta_client_fini(struct ta_client *c); /* accepts zeroed memory; the thread has ended */
void ta_client_run(struct ta_client *c);
/* Instead of run(): only writes the spool to disk. */
void ta_client_keep_only(struct ta_client *c);
void ta_client_wake(struct ta_client *c);
/* Notes that a caller begins (yes) or ends waiting for acks: meanwhile the sender takes no rests. */
void ta_client_hurry(struct ta_client *c, bool yes);
/* Asks for a snap (agent/spool/recorder.h): last_ns 0: all. Async-signal-safe. The first of the writer, the
 * sender and a waiting caller takes it. */
void ta_client_ask_snap(struct ta_client *c, uint64_t last_ns);
void ta_client_take_snap(struct ta_client *c);
void ta_client_stop(struct ta_client *c);
void ta_client_status(struct ta_client *c, struct ta_client_status *out);

#endif
