/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a running collector's archive (proto/archive.proto over nng REQ).
 *
 * Where it is: --server HOST (tls+tcp://HOST:7072), HOST:PORT, @FILE (a collector's --ready-file) or
 * an nng URL; else TRACECTL_SERVER, else `server` in the configuration file, else the ipc:// socket
 * in /run/tracecollect, else in ./tracecollect-data. Certificates likewise: --certs DIR (ca.pem,
 * reader.pem, reader.key), single files by --tls-ca, --tls-cert, --tls-key.
 *
 * A verb puts TK_CLIENT_OPTIONS into its getopt_long() table and hands each option it does not know
 * to tk_client_option().
 *
 * Memory    a reply is lent until the next question or the close.
 * Time      dialling and each answer have a deadline; nothing waits for ever.
 * Errors    TB_BROKEN: usage. TB_REFUSED: the collector does not take us, or will not do it.
 *           TB_IO: not reachable, no answer in time. Else the collector's own code and words.
 */
#ifndef TK_REMOTE_CLIENT_H
#define TK_REMOTE_CLIENT_H

#include "base/result.h"
#include "proto/archive.pb-c.h"
#include "tools/tracectl/args/selector.h"

enum {
  TK_OPT_SERVER = 0x1000,
  TK_OPT_CERTS,
  TK_OPT_TLS_CA,
  TK_OPT_TLS_CERT,
  TK_OPT_TLS_KEY,
  TK_OPT_TLS_CRL,
};

#define TK_CLIENT_OPTIONS                                                                          \
  { "server", required_argument, NULL, TK_OPT_SERVER },                                            \
      { "certs", required_argument, NULL, TK_OPT_CERTS },                                          \
      { "tls-ca", required_argument, NULL, TK_OPT_TLS_CA },                                        \
      { "tls-cert", required_argument, NULL, TK_OPT_TLS_CERT },                                    \
      { "tls-crl", required_argument, NULL, TK_OPT_TLS_CRL }, {                                    \
    "tls-key", required_argument, NULL, TK_OPT_TLS_KEY                                             \
  }

struct tk_client_args {
  const char *server, *certs, *tls_ca, *tls_cert, *tls_key, *tls_crl; /* NULL: not given */
};

/* True: it was one of ours and is taken. */
bool tk_client_option(struct tk_client_args *args, int option, const char *value);

/* The end of a verb's help. */
#define TK_CLIENT_HELP                                                                             \
  "  --server HOST|HOST:PORT|@FILE  the collector, or its ready file; default: sockets here\n"     \
  "  --certs DIR                    ca.pem, reader.pem and reader.key\n"                           \
  "  --tls-ca FILE, --tls-cert FILE, --tls-key FILE\n"                                             \
  "                                 or each by its own name; environment: TRACECTL_SERVER,\n"      \
  "                                 TRACECTL_CERTS, TRACECTL_TLS_CA, ...\n"                        \
  "  --tls-crl FILE                 revocation lists: a collector listed there is refused\n"

struct tk_client;

TB_MUST tb_rc tk_client_open(const struct tk_client_args *args, struct tb_diag *diag,
                             struct tk_client **out);
void tk_client_close(struct tk_client *client);

/* The answer of the same kind as the question, or the collector's error. */
TB_MUST tb_rc tk_client_ask(struct tk_client *client, const Tracecollect__V1__Request *request,
                            struct tb_diag *diag, const Tracecollect__V1__Reply **out);

/* window: "10s", "1m", "5m", "all". One report for each stream the selector matches. */
TB_MUST tb_rc tk_client_report(struct tk_client *client, const char *kind, const char *window,
                               const struct tk_selector *selector, struct tb_diag *diag,
                               const Tracecollect__V1__ReportReply **out);

/* The value of key in a collector's ready file; TB_NOTFOUND: no such line. */
TB_MUST tb_rc tk_ready_file_get(const char *path, const char *key, struct tb_diag *diag, char *out,
                                size_t out_bytes);

#endif
