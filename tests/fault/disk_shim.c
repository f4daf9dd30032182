/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a daemon under test: a disk that is slow or broken, and a wall clock that jumps, as a file says.
 *
 * TT_SHIM names a file of three little-endian numbers of 64 bits, which a test may rewrite at any time:
 *
 *     0  nanoseconds that each fdatasync and fsync takes longer
 *     8  errno of every pwritev and fdatasync; 0: none
 *    16  nanoseconds by which CLOCK_REALTIME is wrong, with a sign
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct orders {
  _Atomic int64_t sync_ns, write_errno, clock_ns;
};

static struct orders none;
static struct orders *orders = &none;

__attribute__((constructor)) static void look_up(void) {
  const char *path = getenv("TT_SHIM");
  int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *orders, PROT_READ, MAP_SHARED, fd, 0);

  if (map != MAP_FAILED) orders = map;
  if (fd >= 0) close(fd);
}

static int sync_slowly(long call, int fd) {
  int64_t ns = orders->sync_ns;
  struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

  if (ns > 0) clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
  if (orders->write_errno != 0) {
    errno = (int)orders->write_errno;
    return -1;
  }
  return (int)syscall(call, fd);
}

int fdatasync(int fd) {
  return sync_slowly(SYS_fdatasync, fd);
}

int fsync(int fd) {
  return sync_slowly(SYS_fsync, fd);
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t offset) {
  if (orders->write_errno != 0) {
    errno = (int)orders->write_errno;
    return -1;
  }
  return syscall(SYS_pwritev, fd, iov, n, offset, 0L);
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  int rc = (int)syscall(SYS_clock_gettime, id, ts);
  int64_t by = orders->clock_ns;

  if (rc != 0 || by == 0 || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return rc;
  int64_t ns = (int64_t)ts->tv_nsec + by % 1000000000;
  ts->tv_sec += by / 1000000000 + (ns >= 1000000000) - (ns < 0);
  ts->tv_nsec = (long)((ns + 1000000000) % 1000000000);
  return 0;
}

time_t time(time_t *out) {
  struct timespec ts;

  clock_gettime(CLOCK_REALTIME, &ts);
  if (out != NULL) *out = ts.tv_sec;
  return ts.tv_sec;
}
