/* SPDX-License-Identifier: Apache-2.0 */
/* libtraceagent: sends a program's execution trace to a tracecollectd, live and over mutual TLS 1.3.
 *
 * Forward: bytes of a Go execution trace (format v2), as runtime/trace writes them, any chunking.
 *
 *   struct ta_forward_config cfg = { .server = "collector:7070", .certs = "/etc/myapp/trace",
 *                                    .service = "checkout" };
 *   ta_forward *f;
 *   if (ta_forward_open(&cfg, &f) == 0) {
 *     ta_forward_write(f, bytes, n);        -- from any thread; never blocks
 *     ta_forward_close(f, 2000);            -- waits at most 2 s for the acks
 *   }
 *
 * The law: nothing here blocks (except sync and close, up to their deadline), aborts, raises a signal,
 * changes errno or grows past its budget, whatever the collector, the network or the disk do. What
 * cannot be kept is dropped as whole generations, counted, and told to the collector as a record.
 *
 * Memory    spool_bytes (16 MiB) for what is not acked yet, about 200 KiB beside it.
 * Threads   every function may be called from any thread; one thread of our own per open stream, with
 *           all signals blocked. After fork() the agent is off in the child.
 * Errors    0 or a negative code of enum ta_error; never errno.
 */
#ifndef TRACEAGENT_H
#define TRACEAGENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TA_API __attribute__((visibility("default")))

enum ta_error {
  TA_OK = 0,
  TA_E_CONFIG = -1,  /* a field is missing or wrong: ta_strerror() says which */
  TA_E_NOMEM = -2,
  TA_E_TIMEOUT = -3, /* the deadline passed; what is unsent stays (sync) or is given up (close) */
  TA_E_OFF = -4,     /* agent is off: TRACEAGENT_DISABLE=1, forked child, or a fault of our own */
  TA_E_REFUSED = -5, /* the collector refused for good, by name */
  TA_E_CERT = -6,    /* certificate or key unreadable or not matching */
  TA_E_CLOSED = -7,
  TA_E_THREAD = -8, /* no thread could be started */
};

typedef struct ta_forward ta_forward;

/* Strings are copied. Zero means the default. Environment: TRACEAGENT_DISABLE=1 turns everything off
 * (open answers TA_E_OFF); TRACEAGENT_SERVER, TRACEAGENT_CERTS, TRACEAGENT_SERVICE and
 * TRACEAGENT_INSTANCE fill fields left NULL. */
struct ta_forward_config {
  size_t size;                 /* sizeof this struct, or 0: the first version */
  const char *server;          /* HOST:PORT, or @FILE: a collector's --ready-file */
  const char *certs;           /* folder with ca.pem, agent.pem, agent.key */
  const char *ca, *cert, *key; /* or the three files by name */
  const char *service;         /* [A-Za-z0-9._:-]{1,64}, required */
  const char *instance;        /* default HOST:PID */
  uint64_t spool_bytes;        /* RAM for what is not acked yet; default 16 MiB, at least 1 MiB */
  uint64_t rate_bytes_s;       /* cap on what is sent a second; 0: none */
  /* Optional; called from our thread. level as in syslog(3). */
  void (*log)(void *self, int level, const char *text);
  void *log_self;
};

enum ta_state {
  TA_STATE_CONNECTING = 1,
  TA_STATE_STREAMING = 2,
  TA_STATE_WAITING = 3, /* backing off before the next try */
  TA_STATE_REFUSED = 4,
  TA_STATE_CLOSED = 5,
  TA_STATE_OFF = 6,
};

struct ta_forward_status {
  size_t size; /* set by the caller to sizeof this struct */
  enum ta_state state;
  uint64_t produced_batches, produced_bytes; /* handed to write() */
  uint64_t acked_batches, acked_bytes, acked_generations;
  uint64_t lost_batches, lost_bytes, lost_generations;
  uint64_t spool_bytes, spool_bytes_peak;
  uint64_t connects, reconnects;
  uint64_t resent_batches;
  char stream[33];      /* hex id of the stream */
  char last_error[200]; /* of the last refusal or lost connection, empty if none */
  uint64_t faults;      /* failed checks of our own; the first turned the stream off */
  /* How often the collector came back without records it had acked, its state wiped or restored from an
   * older copy. Each time the stream goes on under another id, what was acked counts as lost, and the next
   * whole generation is the first of the new one. log() hears of it at LOG_WARNING. */
  uint64_t begun_anew;
};

TA_API int ta_forward_open(const struct ta_forward_config *config, ta_forward **out);

/* Takes n bytes of the trace, in order. write() and finish() on one stream must not overlap (the Go
 * runtime's do not). Copies and returns 0; bytes that cannot be kept are counted as lost, which is no
 * error here. TA_E_CLOSED, TA_E_OFF, TA_E_REFUSED: nothing was taken, nothing ever will be. */
TA_API int ta_forward_write(ta_forward *f, const void *bytes, size_t n);

/* Waits until everything written so far (whole generations; the open one up to its last batch) is acked.
 * deadline_ms < 0: for ever. 0: acked; TA_E_TIMEOUT, TA_E_REFUSED, TA_E_OFF. */
TA_API int ta_forward_sync(ta_forward *f, int64_t deadline_ms);

/* Says that nothing more will come: the last generation is complete, a CLOSE record is on its way,
 * write() answers TA_E_CLOSED. Waits for nothing; a sync() after it waits for the whole stream. */
TA_API void ta_forward_finish(ta_forward *f);

/* Finishes, waits until all is acked or the deadline has passed, then frees f in any case. */
TA_API int ta_forward_close(ta_forward *f, int64_t deadline_ms);

/* Every field up to out->size; TA_E_OFF in a forked child. */
TA_API int ta_forward_status(ta_forward *f, struct ta_forward_status *out);

/* Words for an answer; for TA_E_CONFIG and TA_E_CERT of the last open on this thread, the very fault. */
TA_API const char *ta_strerror(int error);
TA_API const char *ta_version(void);

#ifdef __cplusplus
}
#endif
#endif
