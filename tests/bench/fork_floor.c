/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the floor for fork() in a program with a TLS connection: when preloaded, makes two threads and connects to
 * FLOOR_SERVER (address:port) with the certificates in FLOOR_CERTS, and does nothing more. Compared with bench_fork;
 * independent of the agent. */
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *must_have(const char *text, const char *what) {
  if (text != NULL) return text;
  fprintf(stderr, "fork_floor: %s\n", what);
  _exit(1);
}

static void *rest(void *self) {
  for (;;) pause();
  return self;
}

static const char *in_folder(const char *file) {
  static char path[4096];

  snprintf(path, sizeof path, "%s/%s", must_have(getenv("FLOOR_CERTS"), "no FLOOR_CERTS"), file);
  return path;
}

static int dial(const char *server) {
  struct sockaddr_in to = { .sin_family = AF_INET };
  char host[64];
  unsigned port;
  int fd = socket(AF_INET, SOCK_STREAM, 0);

  if (sscanf(server, "%63[^:]:%u", host, &port) != 2 || inet_pton(AF_INET, host, &to.sin_addr) != 1)
    return -1;
  to.sin_port = htons((uint16_t)port);
  return connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 ? fd : -1;
}

static void *connect_and_rest(void *self) {
  static const unsigned char alpn[] = "\x0etracecollect/1";
  SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
  int done = SSL_CTX_load_verify_locations(ctx, in_folder("ca.pem"), NULL) == 1 &&
             SSL_CTX_use_certificate_chain_file(ctx, in_folder("agent.pem")) == 1 &&
             SSL_CTX_use_PrivateKey_file(ctx, in_folder("agent.key"), SSL_FILETYPE_PEM) == 1 &&
             SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1) == 0;
  SSL *tls = SSL_new(ctx);
  int fd = dial(must_have(getenv("FLOOR_SERVER"), "no FLOOR_SERVER"));
  must_have(done && fd >= 0 && SSL_set_fd(tls, fd) == 1 && SSL_connect(tls) == 1 ? "" : NULL,
            "no connection");
  return rest(self);
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;

  must_have(pthread_create(&thread, NULL, rest, NULL) == 0 &&
                    pthread_create(&thread, NULL, connect_and_rest, NULL) == 0
                ? ""
                : NULL,
            "no threads");
}
