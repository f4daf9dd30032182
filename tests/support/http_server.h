/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server on a loop of its own, and a client that says exactly the bytes it is told. */
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
  atomic_bool metrics_wait; /* a scrape ends no sooner than this is false */
  atomic_bool loop_waits;   /* the same of the loop, where its health is asked for */
  atomic_uint health_asked;
  struct tc_metrics metrics;
  char address[300];
  char path[80]; /* of the unix socket */
  unsigned port, metrics_port;
};

/* Limits as a test wants them quick: seconds where the daemon has tens of them. */
struct tc_http_limits tt_http_limits(void);

/* Value of http.metrics for the servers that are started: true for "open". */
extern bool tt_http_metrics_are_open;

/* The unix socket and a port for metrics are there, too; address "": nothing else. query: NULL where no question goes there. */
struct tt_http *tt_http_start(const char *address, const struct tc_http_limits *limits,
                              struct tc_query *query);
struct tt_http *tt_http_start_with(const char *address, const struct tc_http_limits *limits,
                                   struct tc_query *query, struct tc_leases *leases);
void tt_http_stop(struct tt_http *server);

int tt_http_dial(const struct tt_http *server);      /* a socket whose reads end in time */
int tt_http_dial_path(const struct tt_http *server); /* the same by the unix socket */
int tt_http_dial_metrics(const struct tt_http *server);
int tt_http_dial_from(const struct tt_http *server, uint32_t address); /* of this host: 127.0.0.2 */
void tt_http_say(int fd, const void *bytes, size_t n);
void tt_http_say_in_pieces(int fd, const char *text, size_t piece);
/* Reads until the peer ends or, where until is given, until it was said; NUL-terminated. */
size_t tt_http_hear(int fd, char *out, const char *until);
/* Asks at an open connection, hears all there is to its end, and closes it. */
size_t tt_http_ask_at(int fd, const char *text, size_t piece, char *out);
/* Asks in pieces of so many bytes, hears all there is to the end of the connection. */
size_t tt_http_ask(const struct tt_http *server, const char *text, size_t piece, char *out);

#endif
