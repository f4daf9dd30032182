/* SPDX-License-Identifier: Apache-2.0 */
/* Greetings by descriptor. If a socket was closed during its greeting, the number may be reused: then the inode differs. */
#include "nng/greeting.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/clock.h"

enum { FDS = 65536, GREETING_BYTES = 8 };

struct greeting {
  atomic_uint
      left; /* bytes still to come; 0: finished. The other fields change only while this is 0 */
  ino_t inode;
  uint64_t until_ns;
};

static _Atomic uint64_t limit_ns;
static struct greeting greetings[FDS]; /* only pages in use take memory */

void tc_nng_greeting_limit(uint64_t ms) {
  limit_ns = ms * 1000000;
}

void tc__greeting_begin(int fd) {
  struct greeting *g = &greetings[fd];
  struct stat at;

  if (limit_ns == 0 || fd >= FDS || fstat(fd, &at) != 0) return;
  atomic_store(&g->left, 0);
  g->inode = at.st_ino;
  g->until_ns = tc_mono_ns() + limit_ns;
  atomic_store(&g->left, GREETING_BYTES);
}

/* n bytes were received: is the greeting incomplete and past its deadline? */
static bool is_late(struct greeting *g, int fd, size_t n) {
  unsigned left = atomic_load(&g->left);
  struct stat at;
  bool is_its = fstat(fd, &at) == 0 && at.st_ino == g->inode;
  bool is_over = !is_its || n >= left;
  atomic_store(&g->left, is_over ? 0 : left - (unsigned)n);
  return !is_over && tc_mono_ns() >= g->until_ns;
}

typedef ssize_t (*readv_call)(int fd, const struct iovec *parts, int n);
static readv_call real_readv;

static void find_call(void) {
  *(void **)&real_readv = dlsym(RTLD_NEXT, "readv");
}

/* Weak: see accept.c. */
__attribute__((weak)) ssize_t readv(int fd, const struct iovec *parts, int n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, find_call);
  ssize_t got = real_readv(fd, parts, n);
  if (got <= 0 || fd >= FDS || atomic_load(&greetings[fd].left) == 0) return got;
  if (!is_late(&greetings[fd], fd, (size_t)got)) return got;
  errno = ECONNRESET;
  return -1;
}
