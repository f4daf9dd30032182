/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a running collector over HTTP (proto/routes.def).
 *
 * Its address: --server HOST (port 7073), HOST:PORT, http://... or https://..., unix:PATH, or @FILE (a collector's
 * --ready-file); else TRACECTL_SERVER, else `server` in the configuration file, else http.sock in /run/tracecollect, else in
 * /var/lib/tracecollect, else in ./tracecollect-data. Certificates likewise: --certs DIR (ca.pem, reader.pem, reader.key), single files by --tls-ca,
 * --tls-cert, --tls-key.
 *
 * Memory    an answer is lent until the next request or the close.
 * Threads   one at a time; tk_client_stop() is for any.
 * Time      connecting and each answer have a deadline.
 * Errors    TB_BROKEN: usage. TB_REFUSED: the collector refuses us, or the request. TB_IO: not reachable, or no answer in
 *           time. Otherwise the collector's own code and text.
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

/* Rows for a verb's table; the field is a struct tk_client_args: `tracectl help connect`. */
extern const struct tk_option tk_client_options[];
bool tk_client_is_given(const struct tk_client_args *args); /* by an option */

struct tk_client;
struct tk_endpoint;

/* The first request connects. */
TB_MUST tb_rc tk_client_open(const struct tk_client_args *args, struct tb_diag *diag,
                             struct tk_client **out);
void tk_client_close(struct tk_client *client); /* accepts NULL */
/* Ends the current request with TB_END, and all later ones. */
void tk_client_stop(struct tk_client *client);
const struct tk_endpoint *tk_client_where(const struct tk_client *client);

/* rest: the path after the route's, or "". ask: the request, NULL if the route has none. out: a pointer to the answer,
 * NULL if the route has none. */
TB_MUST tb_rc tk_client_ask(struct tk_client *client, enum tp_route_id route, const char *rest,
                            const ProtobufCMessage *ask, struct tb_diag *diag, void *out);

/* A part of a segment's file. */
struct tk_range {
  uint64_t segment, offset, bytes;
  bool sum; /* compare chunks with their CRC32C, because no hash covers the range */
};
typedef tb_rc tk_bytes_fn(void *self, const unsigned char *bytes, size_t n);
/* TB_CORRUPT: the file is shorter, or a checksum differs. Resumes after a lost connection, so no byte is passed twice. */
TB_MUST tb_rc tk_client_read(struct tk_client *client, const struct tk_range *range,
                             tk_bytes_fn *take, void *self, struct tb_diag *diag);
/* Passes on server-sent events until the connection or take() ends. */
TB_MUST tb_rc tk_client_live(struct tk_client *client, const Tracecollect__V1__LiveRequest *ask,
                             tk_bytes_fn *take, void *self, struct tb_diag *diag);

/* window: "10s", "1m", "5m", "all"; sum: as in ReportRequest. Gets a report for each stream that the selector matches; no
 * report is not an error. */
TB_MUST tb_rc tk_client_report(struct tk_client *client, const char *kind, const char *window,
                               const struct tk_selector *selector, const char *sum,
                               struct tb_diag *diag, const Tracecollect__V1__ReportReply **out);

/* Reads the value of a key from a collector's ready file; TB_NOTFOUND: no such line. */
TB_MUST tb_rc tk_ready_file_get(const char *path, const char *key, struct tb_diag *diag, char *out,
                                size_t out_bytes);

#endif
