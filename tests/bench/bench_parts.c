/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the steps that no collector can do without, each alone, on one core and warm:
 *
 *     tls      AES-128-GCM opened, records of 16 KiB
 *     crc      CRC32C of the bytes
 *     hash     XXH3-128 of the bytes
 *     copy     one copy, into memory that is not in the caches
 *     write    to a file twice, log and segment: pwrite() into the page cache, and sync
 *
 * bench_parts TRACE FOLDER: prints a line "name ms_per_mb" for each, the best of ROUNDS, CPU time of the process
 * (without the kernel's work to write the pages back). Ordering and analyses are measured by bench_analyses. */
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/crc32c.h"

enum { ROUNDS = 5, RECORD_BYTES = 16 << 10, TAG_BYTES = 16, IV_BYTES = 12, PIECE_BYTES = 1 << 20 };

struct bench {
  unsigned char *bytes, *sealed, *room;
  size_t len;
  int fd;
};

typedef int part_fn(struct bench *bench);

static double cpu_ms(void) {
  struct timespec now;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static const unsigned char key[16] = { 1 }, iv[IV_BYTES] = { 2 };

/* Seals or opens the bytes of one record; the tag follows the sealed bytes. */
static int crypt_record(EVP_CIPHER_CTX *ctx, int seal, const unsigned char *from, size_t n,
                        unsigned char *to, unsigned char *tag) {
  int len;

  if (EVP_CipherInit_ex(ctx, NULL, NULL, NULL, iv, seal) != 1) return -1;
  if (!seal && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) != 1) return -1;
  if (EVP_CipherUpdate(ctx, to, &len, from, (int)n) != 1) return -1;
  if (EVP_CipherFinal_ex(ctx, to + len, &len) != 1) return -1;
  if (seal && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, tag) != 1) return -1;
  return 0;
}

static int crypt_all(struct bench *b, int seal) {
  EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
  unsigned char *at = b->sealed;
  int rc =
      ctx != NULL && EVP_CipherInit_ex(ctx, EVP_aes_128_gcm(), NULL, key, iv, seal) == 1 ? 0 : -1;

  for (size_t done = 0; rc == 0 && done < b->len;
       done += RECORD_BYTES, at += RECORD_BYTES + TAG_BYTES) {
    size_t n = b->len - done < RECORD_BYTES ? b->len - done : RECORD_BYTES;
    rc = seal ? crypt_record(ctx, seal, b->bytes + done, n, at, at + RECORD_BYTES)
              : crypt_record(ctx, seal, at, n, b->room, at + RECORD_BYTES);
  }
  EVP_CIPHER_CTX_free(ctx);
  return rc;
}

static int open_records(struct bench *b) {
  return crypt_all(b, 0);
}

static int sum_crc(struct bench *b) {
  volatile uint32_t crc = tb_crc32c(0, b->bytes, b->len);
  (void)crc;
  return 0;
}

static int sum_hash(struct bench *b) {
  volatile uint64_t low = XXH3_128bits(b->bytes, b->len).low64;
  (void)low;
  return 0;
}

static int copy(struct bench *b) {
  memcpy(b->sealed, b->bytes, b->len);
  __asm__ volatile("" ::"r"(b->sealed) : "memory");
  return 0;
}

static int write_twice(struct bench *b) {
  for (unsigned file = 0; file < 2; file++) {
    if (ftruncate(b->fd, 0) != 0) return -1;
    for (size_t done = 0; done < b->len; done += PIECE_BYTES) {
      size_t n = b->len - done < PIECE_BYTES ? b->len - done : PIECE_BYTES;
      if (pwrite(b->fd, b->bytes + done, n, (off_t)done) != (ssize_t)n) return -1;
    }
    if (fdatasync(b->fd) != 0) return -1;
  }
  return 0;
}

static int measure(struct bench *b, const char *name, part_fn *part) {
  double best = 0;

  for (unsigned round = 0; round < ROUNDS; round++) {
    double before = cpu_ms();
    if (part(b) != 0) {
      perror(name);
      return -1;
    }
    double took = cpu_ms() - before;
    if (round == 0 || took < best) best = took;
  }
  printf("%s %.3f\n", name, best / ((double)b->len / 1e6));
  return 0;
}

static int read_trace(struct bench *b, const char *path) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC);

  if (fd < 0 || fstat(fd, &st) != 0) return -1;
  b->len = (size_t)st.st_size;
  b->bytes = malloc(b->len);
  b->sealed = malloc(b->len / RECORD_BYTES * (RECORD_BYTES + TAG_BYTES) + 2 * RECORD_BYTES);
  b->room = malloc(2 * RECORD_BYTES);
  if (b->bytes == NULL || b->sealed == NULL || b->room == NULL) return -1;
  for (size_t done = 0; done < b->len;) {
    ssize_t n = read(fd, b->bytes + done, b->len - done);
    if (n <= 0) return -1;
    done += (size_t)n;
  }
  return close(fd);
}

int main(int argc, char **argv) {
  struct bench b = { .fd = -1 };
  char path[4096];

  if (argc != 3) {
    fprintf(stderr, "usage: bench_parts TRACE FOLDER\n");
    return 2;
  }
  snprintf(path, sizeof path, "%s/parts", argv[2]);
  if (read_trace(&b, argv[1]) != 0 || crypt_all(&b, 1) != 0 ||
      (b.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0) {
    perror(argv[1]);
    return 1;
  }
  int rc = measure(&b, "tls", open_records);
  if (rc == 0) rc = measure(&b, "crc", sum_crc);
  if (rc == 0) rc = measure(&b, "hash", sum_hash);
  if (rc == 0) rc = measure(&b, "copy", copy);
  if (rc == 0) rc = measure(&b, "write", write_twice);
  unlink(path);
  return rc == 0 ? 0 : 1;
}
