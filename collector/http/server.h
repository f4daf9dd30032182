/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/1.1 server: metrics, health, the API of docs/HTTP.md, live events and the page.
 *
 * A connection may stay for further requests, sent one by one or all at once (pipelined); they are answered
 * in their order. It comes by one of three doors: a TCP address, plain on loopback and TLS 1.3 elsewhere; a unix
 * socket, which is always there; an address of metrics alone. The door and the certificate say what
 * it may do (access.c): plain TCP only reads, who has no certificate hears whether we are well.
 *
 * Calls that may block, a question to the catalog or a read of a file, are done by libuv's workers; the loop
 * only moves bytes. Where connections have no room left, the one that has been without a whole request the
 * longest gives way, then the one that has been slow to take its answer the longest, so that silent and slow peers
 * shut no other out. Handshakes that are not over have a quarter of the room, and give way to each other. Beside them there are places and a worker for health and metrics that nobody else can take, and one
 * owner (a certificate's name or, without TLS, an address) has no more than a share of the questions.
 *
 * Memory    a connection is some 7 KiB; answers are as large as they are, a file's pass in chunks.
 * Threads   all calls on the loop's thread. The source's calls come as said there.
 * Time      uv_now(); tick() keeps the deadlines, to be called some ten times a second.
 * Errors    open: TB_IO with the address or path in diag; TB_CORRUPT: certificates.
 */
#ifndef TC_HTTP_SERVER_H
#define TC_HTTP_SERVER_H

#include "collector/analysis/pauses_history.h"
#include "collector/feed/publisher.h"
#include "collector/http/health.h"
#include "collector/http/metrics/text.h"
#include "collector/lease/broker.h"
#include "collector/net/tls_connection.h"
#include "collector/query/session.h"

/* Where answers come from. */
struct tc_http_source {
  void *self;
  tb_rc (*metrics)(void *self, struct tb_buf *out); /* on a worker */
  const char *(*unhealthy)(void *self); /* on the loop; NULL: all is well; else why not */
  void (*readiness)(void *self, struct tc_readiness *out); /* on the loop */
};

struct tc_http_limits {
  size_t connections_max; /* at once */
  size_t owner_questions_max; /* of one owner, being answered at once */
  size_t owner_live_max;      /* of live_max */
  size_t head_bytes_max;  /* of a request */
  size_t body_bytes_max;  /* likewise */
  size_t jobs_max;        /* long ones */
  size_t owner_jobs_max;  /* one owner's share of jobs_max */
  uint64_t job_expire_ms; /* a long one that nobody asks for */
  uint64_t request_ms;    /* from its first byte to its last */
  uint64_t idle_ms;       /* between two requests */
  uint64_t stall_ms;      /* while nothing of an answer leaves */
  size_t live_max;        /* readers of live events at once */
  size_t live_bytes_max;  /* live events kept for readers that are behind, of all together */
  uint64_t heartbeat_ms;  /* a comment to a live reader where nothing else was said */
  size_t timeline_bytes;  /* generations in memory for timelines */
};

enum { TC_HTTP_WORKERS = 9 };

/* libuv's workers are all the server's: before the first of them is needed, and while one thread runs. */
void tc_http_set_workers(void);

struct tc_http_env {
  struct tc_tls_loop *tls;
  const char *address;            /* HOST:PORT; "": none */
  int socket;                     /* listens on address already: owned; 0: to be opened */
  const char *path;               /* of the unix socket */
  const char *metrics_address;    /* of metrics and health alone; "": none */
  bool metrics_are_open;          /* over TLS to everybody */
  const char *certs;              /* folder */
  struct tc_revocations *revoked; /* held; NULL: none are asked */
  struct tc_http_limits limits;
  struct tc_http_source source;
  struct tc_metrics *metrics; /* counts there, on the loop's thread */
  struct tc_query *query;            /* asked by workers */
  struct tc_leases *leases;          /* stopped before close(), freed after free() */
  uint64_t started_wall_ns;
  struct tc_feed *feed;              /* NULL: live events are overviews only */
  struct tc_pauses_history *history; /* NULL: a page begins with what it sees itself */
};

struct tc_http;

TB_MUST tb_rc tc_http_open(const struct tc_http_env *env, struct tb_diag *diag,
                           struct tc_http **out);
TB_MUST tb_rc tc_http_reload(struct tc_http *http, struct tb_diag *diag); /* certificates */
/* Ends readers whose certificate has been taken back; how many. */
unsigned tc_http_recheck(struct tc_http *http);
void tc_http_tick(struct tc_http *http);
/* After tc_feed_stop(). Ends all connections and waits for the question a worker may be at: the store
 * may be closed afterwards. free() after the loop's last turn. NULL is fine for both. */
void tc_http_close(struct tc_http *http);
void tc_http_free(struct tc_http *http);

const char *tc_http_address(const struct tc_http *http); /* "": none */
const char *tc_http_path(const struct tc_http *http);
const char *tc_http_metrics_address(const struct tc_http *http); /* "": none */

#endif
