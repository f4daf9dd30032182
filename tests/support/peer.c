/* SPDX-License-Identifier: Apache-2.0 */
#include "support/peer.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/text/hostport.h"
#include "proto/frame.pb-c.h"
#include "support/patience.h"

static bool fails(struct tt_peer *peer, const char *where) {
  unsigned long code = ERR_peek_error();
  const char *why = code != 0 ? ERR_reason_error_string(code) : strerror(errno);

  snprintf(peer->why, sizeof peer->why, "%s: %s", where, why != NULL ? why : "ended");
  ERR_clear_error();
  return false;
}

static bool dial(struct tt_peer *peer, const char *address) {
  struct timeval wait = { .tv_sec = TT_PATIENCE_S };
  struct addrinfo want = { .ai_socktype = SOCK_STREAM }, *found;
  struct tb_hostport where;
  char port[8];

  if (tb_hostport_parse(address, NULL, &where) != TB_OK) return fails(peer, address);
  snprintf(port, sizeof port, "%u", where.port);
  if (getaddrinfo(where.host, port, &want, &found) != 0) return fails(peer, address);
  peer->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool ok = peer->fd >= 0 && connect(peer->fd, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (!ok) return fails(peer, "connect");
  setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
  setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt(peer->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  return true;
}

static bool load(struct tt_peer *peer, const struct tt_peer_terms *terms) {
  const char *dir = terms->certs_dir != NULL ? terms->certs_dir : terms->ca_dir;
  char path[512];

  if (terms->ctx != NULL) {
    SSL_CTX_up_ref(terms->ctx);
    peer->ctx = terms->ctx;
    return true;
  }
  peer->ctx = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_min_proto_version(peer->ctx, TLS1_3_VERSION);
  SSL_CTX_set_verify(peer->ctx, SSL_VERIFY_PEER, NULL);
  snprintf(path, sizeof path, "%s/ca.pem", terms->ca_dir);
  if (SSL_CTX_load_verify_file(peer->ctx, path) != 1) return fails(peer, path);
  if (terms->name == NULL) return true;
  snprintf(path, sizeof path, "%s/%s.pem", dir, terms->name);
  if (SSL_CTX_use_certificate_chain_file(peer->ctx, path) != 1) return fails(peer, path);
  snprintf(path, sizeof path, "%s/%s.key", dir, terms->name);
  if (SSL_CTX_use_PrivateKey_file(peer->ctx, path, SSL_FILETYPE_PEM) != 1) return fails(peer, path);
  return true;
}

bool tt_peer_open(struct tt_peer *peer, const struct tt_peer_terms *terms) {
  unsigned char alpn[64];

  *peer = (struct tt_peer){ .fd = -1 };
  signal(SIGPIPE, SIG_IGN);
  if (!load(peer, terms) || !dial(peer, terms->address)) return false;
  peer->ssl = SSL_new(peer->ctx);
  SSL_set_fd(peer->ssl, peer->fd);
  if (terms->alpn != NULL) {
    size_t n = strlen(terms->alpn);

    alpn[0] = (unsigned char)n;
    memcpy(alpn + 1, terms->alpn, n);
    SSL_set_alpn_protos(peer->ssl, alpn, (unsigned)n + 1);
  }
  return SSL_connect(peer->ssl) == 1 || fails(peer, "handshake");
}

void tt_peer_close(struct tt_peer *peer) {
  SSL_free(peer->ssl);
  SSL_CTX_free(peer->ctx);
  if (peer->fd >= 0) close(peer->fd);
  *peer = (struct tt_peer){ .fd = -1 };
}

bool tt_peer_send(struct tt_peer *peer, const void *bytes, size_t n) {
  size_t sent;

  if (n == 0) return true;
  return (SSL_write_ex(peer->ssl, bytes, n, &sent) == 1 && sent == n) || fails(peer, "write");
}

bool tt_peer_send_frame(struct tt_peer *peer, enum tp_kind kind, uint64_t seq, uint64_t gen,
                        const void *payload, size_t n) {
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame = { .kind = kind,
                            .flags = TP_CRITICAL,
                            .seq = seq,
                            .gen = gen,
                            .payload = payload,
                            .len = (uint32_t)n };

  tp_frame_head(&frame, head);
  return tt_peer_send(peer, head, sizeof head) && tt_peer_send(peer, payload, n);
}

bool tt_peer_hello(struct tt_peer *peer, const unsigned char stream[16], const char *service) {
  Tracecollect__V1__Hello m = TRACECOLLECT__V1__HELLO__INIT;
  Tracecollect__V1__Counters counters = TRACECOLLECT__V1__COUNTERS__INIT;
  unsigned char bytes[512], id[16];
  char name[128], instance[] = "host:1", version[] = "test";

  memcpy(id, stream, sizeof id);
  snprintf(name, sizeof name, "%s", service);
  m.major = 1;
  m.stream.data = id;
  m.stream.len = sizeof id;
  m.service = name;
  m.instance = instance;
  m.agent_version = version;
  counters.produced_batches = 7; /* by an earlier connection */
  m.counters = &counters;
  return tt_peer_send_frame(peer, TP_HELLO, 0, 0, bytes, tracecollect__v1__hello__pack(&m, bytes));
}

static bool read_all(struct tt_peer *peer, unsigned char *to, size_t n) {
  size_t got;

  while (n > 0) {
    if (SSL_read_ex(peer->ssl, to, n, &got) != 1) {
      if (SSL_get_error(peer->ssl, 0) == SSL_ERROR_ZERO_RETURN) {
        snprintf(peer->why, sizeof peer->why, "closed in order");
        return false;
      }
      return fails(peer, "read");
    }
    to += got;
    n -= got;
  }
  return true;
}

bool tt_peer_read_frame(struct tt_peer *peer, struct tp_frame *out) {
  size_t used, need;

  errno = 0;
  if (!read_all(peer, peer->bytes, TP_HEADER_BYTES)) return false;
  if (tp_frame_open(peer->bytes, NULL, out) != TB_OK) return fails(peer, "frame head");
  if (!read_all(peer, peer->bytes + TP_HEADER_BYTES, out->len)) return false;
  return tp_frame_take(peer->bytes, TP_HEADER_BYTES + out->len, NULL, out, &used, &need) == TB_OK ||
         fails(peer, "frame");
}

bool tt_peer_wait_for(struct tt_peer *peer, enum tp_kind kind, struct tp_frame *out) {
  while (tt_peer_read_frame(peer, out))
    if (out->kind == kind) return true;
  return false;
}
