/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a running collector over HTTP (proto/routes.def).
 *
 * Where it is: --server HOST (port 7073), HOST:PORT, http://... or https://..., unix:PATH, or @FILE (a collector's
 * --ready-file); else TRACECTL_SERVER, else `server` in the configuration file, else http.sock in
 * /run/tracecollect, else in ./tracecollect-data. Certificates likewise: --certs DIR (ca.pem,
 * reader.pem, reader.key), single files by --tls-ca, --tls-cert, --tls-key.
 *
 * Memory    an answer is lent until the next question or the close.
 * Threads   one at a time; tk_client_stop() is for any.
 * Time      connecting and each answer have a deadline; nothing waits for ever.
 * Errors    TB_BROKEN: usage. TB_REFUSED: the collector does not take us, or will not do it.
 *           TB_IO: not reachable, no answer in time. Else the collector's own code and words.
 */
#ifndef TK_REMOTE_CLIENT_H
#define TK_REMOTE_CLIENT_H

#include "base/result.h"
#include "proto/archive.pb-c.h"
#include "proto/route.h"
#include "tools/tracectl/args/selector.h"

struct tk_client_args {
  const char *server, *certs, *tls_ca, *tls_cert, *tls_key, *tls_crl; /* NULL: not given */
};

/* Rows for a verb's table, their field a struct tk_client_args: `tracectl help connect`. */
extern const struct tk_option tk_client_options[];
bool tk_client_is_given(const struct tk_client_args *args); /* by an option */

struct tk_client;
struct tk_endpoint;

/* Does not connect yet: the first question does. */
TB_MUST tb_rc tk_client_open(const struct tk_client_args *args, struct tb_diag *diag,
                             struct tk_client **out);
void tk_client_close(struct tk_client *client); /* accepts NULL */
/* Ends the question at hand with TB_END, and all that follow. */
void tk_client_stop(struct tk_client *client);
const struct tk_endpoint *tk_client_where(const struct tk_client *client);

/* rest: what follows the route's path, "" where nothing does. ask: its question, NULL where it has none. out: a pointer to
 * its answer, NULL where it has none. */
TB_MUST tb_rc tk_client_ask(struct tk_client *client, enum tp_route_id route, const char *rest,
                            const ProtobufCMessage *ask, struct tb_diag *diag, void *out);

/* A part of a segment's file. */
struct tk_range {
  uint64_t segment, offset, bytes;
  bool sum; /* nothing else tells whether its bytes are right: chunks are compared with their CRC32C */
};
typedef tb_rc tk_bytes_fn(void *self, const unsigned char *bytes, size_t n);
/* TB_CORRUPT: the file is shorter, or does not fit. Goes on where it was cut, so no byte comes twice. */
TB_MUST tb_rc tk_client_read(struct tk_client *client, const struct tk_range *range,
                             tk_bytes_fn *take, void *self, struct tb_diag *diag);
/* Server-sent events, as they come, until the connection ends or take() does. */
TB_MUST tb_rc tk_client_live(struct tk_client *client, const Tracecollect__V1__LiveRequest *ask,
                             tk_bytes_fn *take, void *self, struct tb_diag *diag);

/* window: "10s", "1m", "5m", "all". One report for each stream the selector matches; none yet is none, not an error. */
TB_MUST tb_rc tk_client_report(struct tk_client *client, const char *kind, const char *window,
                               const struct tk_selector *selector, struct tb_diag *diag,
                               const Tracecollect__V1__ReportReply **out);

/* The value of key in a collector's ready file; TB_NOTFOUND: no such line. */
TB_MUST tb_rc tk_ready_file_get(const char *path, const char *key, struct tb_diag *diag, char *out,
                                size_t out_bytes);

#endif
