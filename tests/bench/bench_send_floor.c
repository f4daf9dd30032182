/* SPDX-License-Identifier: Apache-2.0 */
/* bench_send_floor MB: measures the steps that no sender over TLS 1.3 can do without, in ms of CPU
 * a MB.
 *
 * Prints "COPY<TAB>ENCRYPT<TAB>SEND": a copy and a CRC32C of the bytes, as for the spool; AES-128-GCM in records of 16
 * KiB; send(2) of the result, 64 KiB a call, to a process on loopback that reads and discards. Reuses one buffer of 4
 * MiB: the content of the bytes does not affect any of the three. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"

enum { PLAIN = 16 << 10, RECORD = 5 + PLAIN + 1 + 16, RECORDS = 4, POOL = 4 << 20 };

_Noreturn static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double cpu_ms(void) {
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Returns a connected socket; a child reads from its other end. */
static int connect_sink(pid_t *out_child) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t len = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (listener < 0 || bind(listener, (void *)&at, sizeof at) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (void *)&at, &len) != 0)
    fail("listen");
  *out_child = fork();
  if (*out_child < 0) fail("fork");
  if (*out_child == 0) {
    static char away[256 << 10];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = accept(listener, NULL, NULL);
    while (read(fd, away, sizeof away) > 0) continue;
    _exit(0);
  }
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4); /* as the agent within one machine */
  if (fd < 0 || connect(fd, (void *)&at, sizeof at) != 0) fail("connect");
  close(listener);
  return fd;
}

static double copy_ms(unsigned char *spool, const unsigned char *pool, size_t total) {
  uint32_t crc = 0;
  double began = cpu_ms();

  for (size_t done = 0; done < total; done += PLAIN) {
    size_t at = done % POOL;
    memcpy(spool + at, pool + at, PLAIN);
    crc ^= tb_crc32c(0, spool + at, PLAIN);
  }
  spool[0] ^= (unsigned char)crc; /* the sums are used, so that the compiler keeps them */
  return cpu_ms() - began;
}

/* Writes the records to `out` one after the other, as they are sent. */
static void encrypt(EVP_CIPHER_CTX *ctx, const unsigned char *from, unsigned char *out) {
  static unsigned char nonce[12];
  int n;

  nonce[11]++;
  if (EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, nonce) != 1 ||
      EVP_EncryptUpdate(ctx, NULL, &n, out, 5) != 1 ||
      EVP_EncryptUpdate(ctx, out + 5, &n, from, PLAIN) != 1 ||
      EVP_EncryptFinal_ex(ctx, out + 5 + n, &n) != 1 ||
      EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, out + RECORD - 16) != 1)
    fail("AES-128-GCM");
}

static void send_all(int fd, const unsigned char *bytes, size_t n) {
  while (n > 0) {
    ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
    if (sent < 0) fail("send");
    bytes += sent;
    n -= (size_t)sent;
  }
}

int main(int argc, char **argv) {
  static unsigned char pool[POOL], spool[POOL], out[RECORDS * RECORD];
  size_t total =
      argc == 2 ? (size_t)atoi(argv[1]) * 1000000 / (RECORDS * PLAIN) * (RECORDS * PLAIN) : 0;
  EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
  double mb = (double)total / 1e6, encrypt_ms = 0, send_ms = 0;
  pid_t child;

  if (total == 0) return fprintf(stderr, "usage: bench_send_floor MB\n"), 2;
  for (size_t i = 0; i < POOL; i++) pool[i] = (unsigned char)(i * 2654435761u >> 13);
  if (ctx == NULL || EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, pool, NULL) != 1) fail("EVP");
  int fd = connect_sink(&child);
  double copied = copy_ms(spool, pool, total);
  for (size_t done = 0; done < total; done += RECORDS * PLAIN) {
    double t0 = cpu_ms();
    for (int i = 0; i < RECORDS; i++)
      encrypt(ctx, spool + (done + (size_t)i * PLAIN) % POOL, out + i * RECORD);
    double t1 = cpu_ms();
    send_all(fd, out, sizeof out);
    double t2 = cpu_ms();
    encrypt_ms += t1 - t0;
    send_ms += t2 - t1;
  }
  close(fd);
  waitpid(child, NULL, 0);
  EVP_CIPHER_CTX_free(ctx);
  printf("%.4f\t%.4f\t%.4f\n", copied / mb, encrypt_ms / mb, send_ms / mb);
  return 0;
}
