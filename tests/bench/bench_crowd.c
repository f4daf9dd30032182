/* SPDX-License-Identifier: Apache-2.0 */
/* Connects many peers to a collector, until SIGTERM.
 *
 *     bench_crowd idle ADDRESS CERTS COUNT    agents that have sent HELLO, and send only heartbeats
 *     bench_crowd slow ADDRESS COUNT          peers that send a byte of a handshake a second, and reconnect when closed
 *     bench_crowd flood ADDRESS CERTS SOURCE  one handshake after the other from this local address, each closed when done
 *
 * Prints "ready" when all are connected (flood: after the first), and at the end the number of connections made. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/frame.pb-c.h"

enum { COUNT_MAX = 20000, BEAT_MS = 4000, LOOK_MS = 200, SLOW_MS = 1000, SOURCE_PEERS = 100 };

static volatile sig_atomic_t stop;
static unsigned long made;

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "bench_crowd: %s: %s\n", what, strerror(errno));
  ERR_print_errors_fp(stderr);
  exit(1);
}

static uint64_t now_ms(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void rest_ms(long ms) {
  nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static struct sockaddr_in server_of(const char *address) {
  struct sockaddr_in to = { .sin_family = AF_INET };
  char host[64];
  unsigned port;

  if (sscanf(address, "%63[0-9.]:%u", host, &port) != 2 || inet_aton(host, &to.sin_addr) == 0)
    fail(address);
  to.sin_port = htons((uint16_t)port);
  return to;
}

/* Returns -1 if no connection can be made now. source: in network order; 0: any. */
static int dial(const struct sockaddr_in *to, in_addr_t source) {
  struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = source };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd < 0) fail("socket");
  if ((source != 0 && bind(fd, (struct sockaddr *)&from, sizeof from) != 0) ||
      connect(fd, (const struct sockaddr *)to, sizeof *to) != 0) {
    close(fd);
    return -1;
  }
  made++;
  return fd;
}

static SSL_CTX *load(const char *certs) {
  SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
  char ca[512], cert[512], key[512];

  snprintf(ca, sizeof ca, "%s/ca.pem", certs);
  snprintf(cert, sizeof cert, "%s/agent.pem", certs);
  snprintf(key, sizeof key, "%s/agent.key", certs);
  if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
      SSL_CTX_load_verify_file(ctx, ca) != 1 ||
      SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
      SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
    fail(certs);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
  return ctx;
}

/* Takes fd. Returns NULL if the handshake failed. */
static SSL *shake_hands(SSL_CTX *ctx, int fd) {
  static const unsigned char alpn[] = "\x0e" TP_ALPN;
  _Static_assert(sizeof alpn == 1 + 14 + 1, "its length comes first");
  SSL *ssl = SSL_new(ctx);

  if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 ||
      SSL_set_alpn_protos(ssl, alpn, sizeof alpn - 1) != 0)
    fail("TLS");
  if (SSL_connect(ssl) == 1) return ssl;
  SSL_free(ssl);
  close(fd);
  return NULL;
}

/* ---- idle */

struct idle {
  SSL *ssl;
  uint64_t said_ms;
};

static void say(struct idle *peer, enum tp_kind kind, const void *payload, size_t n) {
  unsigned char bytes[512];
  struct tp_frame frame = {
    .kind = kind, .flags = TP_CRITICAL, .payload = payload, .len = (uint32_t)n
  };
  size_t sent;

  tp_frame_head(&frame, bytes);
  if (n > 0) memcpy(bytes + TP_HEADER_BYTES, payload, n);
  if (SSL_write_ex(peer->ssl, bytes, TP_HEADER_BYTES + n, &sent) != 1) fail("an idle one's write");
  peer->said_ms = now_ms();
}

static void say_hello(struct idle *peer) {
  Tracecollect__V1__Hello m = TRACECOLLECT__V1__HELLO__INIT;
  unsigned char bytes[300], id[16], answer[TP_HEADER_BYTES];
  char service[] = "idle", instance[] = "one", version[] = "bench";
  struct tp_frame frame;
  size_t got;

  if (getrandom(id, sizeof id, 0) != sizeof id) fail("getrandom");
  m.major = TP_MAJOR;
  m.minor = TP_MINOR;
  m.stream = (ProtobufCBinaryData){ sizeof id, id };
  m.service = service;
  m.instance = instance;
  m.agent_version = version;
  say(peer, TP_HELLO, bytes, tracecollect__v1__hello__pack(&m, bytes));
  for (size_t n = 0; n < sizeof answer; n += got)
    if (SSL_read_ex(peer->ssl, answer + n, sizeof answer - n, &got) != 1) fail("no welcome");
  if (tp_frame_open(answer, NULL, &frame) != TB_OK || frame.kind != TP_WELCOME)
    fail("not a welcome");
}

static int be_idle(const char *address, const char *certs, size_t count) {
  static struct idle peers[COUNT_MAX];
  struct sockaddr_in to = server_of(address);
  SSL_CTX *ctx = load(certs);
  uint64_t look_ms = 0;
  size_t n = 0;

  while (!stop) {
    if (n < count) {
      int fd = dial(&to, 0);
      if (fd < 0) fail("connect");
      peers[n].ssl = shake_hands(ctx, fd);
      if (peers[n].ssl == NULL) fail("handshake");
      say_hello(&peers[n++]);
      if (n == count) puts("ready");
      fflush(stdout);
    }
    if (now_ms() >= look_ms) {
      look_ms = now_ms() + LOOK_MS;
      for (size_t i = 0; i < n && !stop; i++)
        if (now_ms() - peers[i].said_ms > BEAT_MS) say(&peers[i], TP_HEARTBEAT, NULL, 0);
    }
    if (n == count) rest_ms(LOOK_MS / 2);
  }
  return 0;
}

/* ---- slow */

struct slow {
  int fd;
  unsigned at; /* bytes sent */
};

/* Spreads the peers over source addresses, so that none exceeds the limit per address. */
static in_addr_t source_of(size_t i) {
  return htonl(0x7f000100u + (uint32_t)(i / SOURCE_PEERS));
}

/* Sends the next byte: of the head of a handshake's record of 512 bytes, then of its content. */
static bool say_a_byte(struct slow *peer) {
  static const unsigned char head[] = { 22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3 };
  unsigned char byte = peer->at < sizeof head ? head[peer->at] : 0x5a;

  peer->at++;
  return send(peer->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static int be_slow(const char *address, size_t count) {
  static struct slow peers[COUNT_MAX];
  struct sockaddr_in to = server_of(address);

  for (size_t i = 0; i < count; i++) peers[i].fd = -1;
  for (bool all = false; !stop;) {
    uint64_t began = now_ms();
    size_t open = 0;
    for (size_t i = 0; i < count && !stop; i++) {
      struct slow *peer = &peers[i];
      if (peer->fd < 0) *peer = (struct slow){ .fd = dial(&to, source_of(i)) };
      if (peer->fd >= 0 && !say_a_byte(peer)) {
        close(peer->fd);
        peer->fd = -1;
      }
      open += peer->fd >= 0;
    }
    if (!all) puts("ready");
    fflush(stdout);
    all = true;
    uint64_t took = now_ms() - began;
    if (took < SLOW_MS) rest_ms((long)(SLOW_MS - took));
  }
  return 0;
}

/* ---- flood */

static int flood(const char *address, const char *certs, const char *source) {
  struct sockaddr_in to = server_of(address);
  SSL_CTX *ctx = load(certs);
  unsigned long done = 0;
  struct in_addr from;

  if (inet_aton(source, &from) == 0) fail(source);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  while (!stop) {
    int fd = dial(&to, from.s_addr);
    SSL *ssl = fd >= 0 ? shake_hands(ctx, fd) : NULL;
    ERR_clear_error();
    if (ssl == NULL) continue;
    if (done++ == 0) puts("ready");
    fflush(stdout);
    SSL_free(ssl);
    close(fd);
  }
  printf("handshakes %lu\n", done);
  return 0;
}

int main(int argc, char **argv) {
  size_t count = argc > 3 ? strtoul(argv[argc - 1], NULL, 10) : 0;
  int rc = 2;

  signal(SIGTERM, on_term);
  signal(SIGPIPE, SIG_IGN);
  if (argc == 5 && strcmp(argv[1], "idle") == 0 && count > 0 && count <= COUNT_MAX)
    rc = be_idle(argv[2], argv[3], count);
  else if (argc == 4 && strcmp(argv[1], "slow") == 0 && count <= COUNT_MAX)
    rc = be_slow(argv[2], count);
  else if (argc == 5 && strcmp(argv[1], "flood") == 0)
    rc = flood(argv[2], argv[3], argv[4]);
  if (rc == 0) printf("connections %lu\n", made);
  return rc;
}
