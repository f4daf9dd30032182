/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted agent: a blocking TLS 1.3 client that sends exactly the bytes that a test wants, valid
 * or not.
 *
 * Errors    a call that fails returns false and stores the reason in peer->why. No call waits longer than TT_PATIENCE_S.
 */
#ifndef TT_PEER_H
#define TT_PEER_H

#include <openssl/ssl.h>

#include "proto/frame.h"

struct tt_peer {
  SSL_CTX *ctx;
  SSL *ssl;
  int fd;
  char why[200];
  unsigned char bytes[TP_HEADER_BYTES + TP_CONTROL_BYTES_MAX]; /* of the frame read last */
};

struct tt_peer_terms {
  const char *address;   /* HOST:PORT */
  const char *ca_dir;    /* folder of the trusted ca.pem */
  const char *certs_dir; /* folder of the certificate; NULL: ca_dir */
  const char *name;      /* NAME.pem, NAME.key; NULL: no certificate */
  const char *alpn;      /* NULL: none offered */
  SSL_CTX
  *ctx; /* context of another peer with the same terms, to save reading the files; or NULL */
};

/* Returns false if TCP or TLS failed. A TLS 1.3 client learns of a refused certificate only at its first read. */
bool tt_peer_open(struct tt_peer *peer, const struct tt_peer_terms *terms);
void tt_peer_close(struct tt_peer *peer);

bool tt_peer_send(struct tt_peer *peer, const void *bytes, size_t n);
bool tt_peer_send_frame(struct tt_peer *peer, enum tp_kind kind, uint64_t seq, uint64_t gen,
                        const void *payload, size_t n);
bool tt_peer_hello(struct tt_peer *peer, const unsigned char stream[16], const char *service);

/* Reads the next frame, valid until the next call. Returns false if the connection ended; `why` has
 * the reason. */
bool tt_peer_read_frame(struct tt_peer *peer, struct tp_frame *out);
/* Reads until a frame of this kind; other frames are dropped. */
bool tt_peer_wait_for(struct tt_peer *peer, enum tp_kind kind, struct tp_frame *out);

#endif
