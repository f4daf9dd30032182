/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/1.1 server: metrics, health, the API of docs/HTTP.md, live events and the page.
 *
 * A connection may send several requests, also at once (pipelined); they are answered in order. It is accepted through one
 * of three doors: a TCP address, plain on loopback, else TLS 1.3; a unix socket, which always exists; an address only for
 * metrics. Door and certificate define what the peer may do (access.c): over plain TCP it may only read; without a
 * certificate it gets only the health.
 *
 * Calls that may block, such as a query of the catalog or a read of a file, are done by libuv's workers; the loop only
 * moves bytes. places.c replaces silent and slow connections, so that they cannot shut out others, and has reserved places
 * for health and metrics. One owner (a certificate's name; without TLS an address or a user) may use only a share.
 *
 * Memory    about 7 KiB per connection, and its answer; files are sent in chunks.
 * Threads   all calls on the loop's thread. For the source's functions see below.
 * Time      uv_now(); call tick() about ten times a second, for the deadlines.
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

/* Functions of the daemon that answers need. */
struct tc_http_source {
  void *self;
  tb_rc (*metrics)(void *self, struct tb_buf *out); /* on a worker */
  const char *(*unhealthy)(void *self); /* on the loop; NULL: healthy; else the reason */
  void (*readiness)(void *self, struct tc_readiness *out); /* on the loop */
};

struct tc_http_limits {
  size_t connections_max;     /* at once */
  size_t owner_questions_max; /* requests of one owner that are answered at once */
  size_t owner_live_max;      /* one owner's share of live_max */
  size_t head_bytes_max;      /* head of a request */
  size_t body_bytes_max;      /* body of a request */
  size_t jobs_max;            /* long jobs */
  size_t owner_jobs_max;      /* one owner's share of jobs_max */
  uint64_t job_expire_ms;     /* for a long job that nobody polls */
  uint64_t request_ms;        /* from a request's first byte to its last */
  uint64_t idle_ms;           /* between two requests */
  uint64_t stall_ms;          /* while the peer reads nothing of an answer */
  size_t live_max;            /* readers of live events at once */
  size_t live_bytes_max;      /* live events kept for all slow readers together */
  uint64_t heartbeat_ms;      /* interval of comments to an idle live reader */
  size_t timeline_bytes;      /* generations in memory for timelines */
};

enum { TC_HTTP_WORKERS = 9 };

/* Sets the number of libuv's workers, which only this server uses. Call it before the first is needed, and before other
 * threads start. */
void tc_http_set_workers(void);

struct tc_http_env {
  struct tc_tls_loop *tls;
  const char *address; /* HOST:PORT; "": none */
  int socket; /* a socket that listens on address already, which the server then owns; 0: none */
  const char *path;               /* path of the unix socket */
  const char *metrics_address;    /* address only for metrics and health; "": none */
  bool metrics_are_open;          /* http.metrics: open */
  const char *certs;              /* folder */
  struct tc_revocations *revoked; /* the server holds it; NULL: no check */
  struct tc_http_limits limits;
  struct tc_http_source source;
  struct tc_metrics *metrics; /* of the loop's thread */
  struct tc_query *query;     /* used by workers */
  struct tc_leases *leases;   /* stopped before close(), freed after free() */
  uint64_t started_wall_ns;
  struct tc_feed *feed;              /* NULL: live events are overviews only */
  struct tc_pauses_history *history; /* NULL: pages begin without history */
};

struct tc_http;

TB_MUST tb_rc tc_http_open(const struct tc_http_env *env, struct tb_diag *diag,
                           struct tc_http **out);
TB_MUST tb_rc tc_http_reload(struct tc_http *http, struct tb_diag *diag); /* certificates */
/* Ends connections whose certificate was revoked; returns how many. */
unsigned tc_http_recheck(struct tc_http *http);
void tc_http_tick(struct tc_http *http);
/* close(): call after tc_feed_stop(). Ends all connections and waits for running jobs: the store may be closed afterwards.
 * free(): call after the loop's last turn. Both accept NULL. */
void tc_http_close(struct tc_http *http);
void tc_http_free(struct tc_http *http);

const char *tc_http_address(const struct tc_http *http); /* "": none */
const char *tc_http_path(const struct tc_http *http);
const char *tc_http_metrics_address(const struct tc_http *http); /* "": none */

#endif
