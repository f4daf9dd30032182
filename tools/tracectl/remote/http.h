/* SPDX-License-Identifier: Apache-2.0 */
/* A collector over HTTP, by libcurl: one question at a time over a connection that stays.
 *
 * A GET or DELETE whose connection is lost is asked again: a collector that restarts is back within LOST_MS. One that
 * has a range goes on at the byte it has come to. A POST is asked again only where nobody can have heard it.
 *
 * Memory    an answer is lent until the next question.
 * Threads   one at a time; tk_http_stop() is for any.
 * Time      a connection has 5 s, and a byte of an answer must come every 30 s: longer than the collector waits for anything.
 * Errors    TB_IO: not to be reached, cut, or answered by something that is no collector. TB_REFUSED: either side's TLS does
 *           not take the other. TB_END: stopped. Else the collector's own code and words, or what take() answered.
 */
#ifndef TK_REMOTE_HTTP_H
#define TK_REMOTE_HTTP_H

#include "tools/tracectl/remote/endpoint.h"

struct tk_http_ask {
  const char *method; /* NULL: GET */
  const char *path;   /* "/api/v1/..." and the query */
  const char *accept; /* the type of the answer that is wanted */
  const void *body;   /* protobuf; NULL: none. A POST has one */
  size_t len;
  uint64_t first, bytes; /* the range; bytes 0: all */
  bool sum;              /* with a CRC32C of the answer's bytes */
  tk_bytes_fn *take;     /* of what was wanted; NULL: it is kept */
  void *self;
};

struct tk_http_answer {
  unsigned status; /* 2xx: others are errors */
  const unsigned char *body;
  size_t len;       /* of all that came, kept or taken */
  char type[128];   /* Content-Type */
  char digest[128]; /* Content-Digest; "": none */
};

struct tk_http;

/* Does not connect yet. */
TB_MUST tb_rc tk_http_open(const struct tk_endpoint *where, struct tb_diag *diag,
                           struct tk_http **out);
void tk_http_close(struct tk_http *http); /* accepts NULL */

TB_MUST tb_rc tk_http_ask(struct tk_http *http, const struct tk_http_ask *ask, struct tb_diag *diag,
                          struct tk_http_answer *out);
/* Ends the question at hand, and all that follow. */
void tk_http_stop(struct tk_http *http);

#endif
