/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's end of TLS 1.3, between two BIOs in memory: OpenSSL never sees the socket, so no library
 * can raise SIGPIPE or block. Outgoing bytes wait in one fixed buffer: a write of TA_TLS_WRITE_BYTES
 * (in one call or many) always fits if nothing is pending.
 *
 *   received bytes -> feed()    write() -> pending(), sent() -> the socket
 *   read() -> clear bytes
 *
 * Both sides show a certificate of the same private CA. The collector's certificate must have exactly one SAN URI,
 * tracecollect:server/NAME. If it has no URI at all, one of its DNS or IP names must match the host.
 *
 * OpenSSL uses a library context of its own, made once and never freed, and does not clean up at exit: that would free memory
 * which the sender's thread still uses.
 *
 * Memory    OpenSSL's and this file's, through malloc; about 200 KiB while connected.
 * Threads   one at a time.
 * Errors    TB_REFUSED: one side rejects the other's certificate. TB_PROTOCOL: the peer does not speak TLS 1.3.
 *           TB_END: the peer closed the session. TB_NOTFOUND: a file cannot be read or does not match.
 *           TB_NOMEM. The reason is in diag.
 */
#ifndef TA_NET_TLS_H
#define TA_NET_TLS_H

#include "agent/net/pems.h"

enum { TA_TLS_WRITE_BYTES = 64 << 10 }; /* four full TLS records */

struct ta_tls_files {
  const char *path[TA_PEMS];
  const struct ta_pems *kept; /* used if the files cannot be read; may be NULL */
};

struct ta_tls;

/* Called before OpenSSL's first use, on the thread that uses it; may be NULL. Set before the first new(). */
extern tb_rc (*ta_tls_before_first)(struct tb_diag *diag);

/* Reads the files again, so a rotated certificate is used at the next connection. files must stay valid until free(). */
TB_MUST tb_rc ta_tls_new(const struct ta_tls_files *files, const char *host, struct tb_diag *diag,
                         struct ta_tls **out);
void ta_tls_free(struct ta_tls *tls); /* accepts NULL */

TB_MUST tb_rc ta_tls_feed(struct ta_tls *tls, const void *bytes, size_t n);
TB_MUST tb_rc ta_tls_shake(struct ta_tls *tls); /* TB_AGAIN: waits for the peer's answer */
TB_MUST tb_rc ta_tls_read(struct ta_tls *tls, void *out, size_t max, size_t *out_n);
/* TB_AGAIN: no room; the connection cannot be used any more. */
TB_MUST tb_rc ta_tls_write(struct ta_tls *tls, const void *bytes, size_t n);
void ta_tls_goodbye(struct ta_tls *tls); /* adds close_notify to pending */

/* Returns bytes for the socket; call after each call above, failed ones too, since they may leave an alert. */
size_t ta_tls_pending(struct ta_tls *tls, const unsigned char **out_bytes);
void ta_tls_sent(struct ta_tls *tls, size_t n);

/* Frees OpenSSL's data of the calling thread; call it at the thread's end. */
void ta_tls_thread_end(void);

#endif
