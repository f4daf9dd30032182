/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server on a loop of its own, and a client that sends exactly the given bytes. */
#ifndef TT_HTTP_SERVER_H
#define TT_HTTP_SERVER_H

#include "collector/http/server.h"
#include "support/tls_host.h"

enum { TT_HTTP_ANSWER_BYTES = 1 << 20 };

struct tt_http {
  struct tt_tls_host host;
  struct tc_http *http;
  const char *_Atomic unhealthy;
  atomic_uint scrapes;
  atomic_bool metrics_wait; /* a scrape blocks until this is false */
  atomic_bool loop_waits;   /* the health check blocks the loop until this is false */
  atomic_uint health_asked;
  struct tc_metrics metrics;
  char address[300];
  char path[80]; /* of the unix socket */
  unsigned port, metrics_port;
};

/* Limits short enough for tests: seconds instead of the daemon's tens of seconds. */
struct tc_http_limits tt_http_limits(void);

/* Value of http.metrics for the servers that are started: true for "open". */
extern bool tt_http_metrics_are_open;

/* Starts a server, also on a unix socket and a port for metrics; address "": on those two only. query: NULL if the test
 * sends no queries. */
struct tt_http *tt_http_start(const char *address, const struct tc_http_limits *limits,
                              struct tc_query *query);
struct tt_http *tt_http_start_with(const char *address, const struct tc_http_limits *limits,
                                   struct tc_query *query, struct tc_leases *leases);
void tt_http_stop(struct tt_http *server);

int tt_http_dial(const struct tt_http *server);      /* a socket with a read timeout */
int tt_http_dial_path(const struct tt_http *server); /* the same by the unix socket */
int tt_http_dial_metrics(const struct tt_http *server);
int tt_http_dial_from(const struct tt_http *server, uint32_t address); /* of this host: 127.0.0.2 */
void tt_http_say(int fd, const void *bytes, size_t n);
void tt_http_say_in_pieces(int fd, const char *text, size_t piece);
/* Reads until the peer closes or, if `until` is given, until that text was read; NUL-terminated. */
size_t tt_http_hear(int fd, char *out, const char *until);
/* Sends a request on an open connection, reads until its end, and closes it. */
size_t tt_http_ask_at(int fd, const char *text, size_t piece, char *out);
/* Connects and sends a request in pieces of so many bytes, reads until the connection ends. */
size_t tt_http_ask(const struct tt_http *server, const char *text, size_t piece, char *out);

#endif
