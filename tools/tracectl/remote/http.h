/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a collector over HTTP, with libcurl: one at a time, over a persistent connection.
 *
 * A GET or DELETE whose connection is lost is repeated: a collector that restarts is back within LOST_MS. A range resumes
 * at the next byte. A POST is only repeated if it cannot have been received.
 *
 * Memory    an answer is lent until the next request.
 * Threads   one at a time; tk_http_stop() is for any.
 * Time      5 s to connect, and a byte of the answer every 30 s: the collector never waits longer for anything.
 * Errors    TB_IO: not reachable, cut off, or not answered by a collector. TB_REFUSED: one side's TLS refuses the other.
 *           TB_END: stopped. Otherwise the collector's own code and text, or take()'s.
 */
#ifndef TK_REMOTE_HTTP_H
#define TK_REMOTE_HTTP_H

#include "tools/tracectl/remote/endpoint.h"

struct tk_http_ask {
  const char *method; /* NULL: GET */
  const char *path;   /* "/api/v1/..." and the query */
  const char *accept; /* requested type of the answer */
  const void *body;   /* protobuf; NULL: none. A POST has one */
  size_t len;
  uint64_t first, bytes; /* the range; bytes 0: all */
  bool sum;              /* with a CRC32C of the answer's bytes */
  tk_bytes_fn *take;     /* takes the body of a good answer; NULL: the body is stored */
  void *self;
};

struct tk_http_answer {
  unsigned status; /* others than 2xx are errors */
  const unsigned char *body;
  size_t len;       /* of the whole body, stored or taken */
  char type[128];   /* Content-Type */
  char digest[128]; /* Content-Digest; "": none */
};

struct tk_http;

/* The first request connects. */
TB_MUST tb_rc tk_http_open(const struct tk_endpoint *where, struct tb_diag *diag,
                           struct tk_http **out);
void tk_http_close(struct tk_http *http); /* accepts NULL */

TB_MUST tb_rc tk_http_ask(struct tk_http *http, const struct tk_http_ask *ask, struct tb_diag *diag,
                          struct tk_http_answer *out);
/* Ends the current request, and all later ones. */
void tk_http_stop(struct tk_http *http);

#endif
