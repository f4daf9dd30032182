/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a daemon under test: simulates a disk that is slow or broken, and a wall clock that jumps, controlled
 * by a file.
 *
 * TT_SHIM names a file of little-endian numbers of 64 bits and a text, which a test may rewrite at any time:
 *
 *     0  nanoseconds that each fdatasync and fsync takes longer
 *     8  errno of every pwritev and fdatasync; 0: none
 *    16  nanoseconds by which CLOCK_REALTIME is wrong, with a sign
 *    24  errno of reads of files whose paths match the text; 0: none. Write it last
 *    32  the first byte of such a file that cannot be read, and 40: the first one behind it that can
 *    48  how many reads failed: the shim counts them
 *    56  the inode of the file that is meant; 0: any that matches
 *    64  the text: a pattern of fnmatch(3), ended by a zero
 *
 * As with a bad sector, a read that begins before the unreadable bytes is short, and a read that
 * begins in them fails.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct orders {
  _Atomic int64_t sync_ns, write_errno, clock_ns;
  _Atomic int64_t read_errno, unreadable_from, unreadable_end, failed_reads, inode;
  char unreadable[200];
};

static struct orders none;
static struct orders *orders = &none;

__attribute__((constructor)) static void look_up(void) {
  const char *path = getenv("TT_SHIM");
  int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
  void *map =
      fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

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

/* Changes errno only if the file is unreadable. */
static bool is_unreadable_file(int fd) {
  char link[40], path[512];
  struct stat st;
  int before = errno;

  if (orders->read_errno == 0) return false;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  errno = before;
  if (n <= 0) return false;
  path[n] = '\0';
  if (fnmatch(orders->unreadable, path, 0) != 0) return false;
  return orders->inode == 0 || (fstat(fd, &st) == 0 && (int64_t)st.st_ino == orders->inode);
}

/* Returns how many of the n bytes can be read, or -1 with errno if not even the first can. */
static ssize_t readable(int fd, size_t n, off_t at) {
  off_t from = orders->unreadable_from, end = orders->unreadable_end;

  if (n == 0 || at >= end || at + (off_t)n <= from || !is_unreadable_file(fd)) return (ssize_t)n;
  if (at < from) return (ssize_t)(from - at);
  atomic_fetch_add(&orders->failed_reads, 1);
  errno = (int)orders->read_errno;
  return -1;
}

ssize_t pread(int fd, void *to, size_t n, off_t at) {
  ssize_t can = readable(fd, n, at);

  return can < 0 ? -1 : syscall(SYS_pread64, fd, to, (size_t)can, at);
}

/* Reads into one buffer only, as HTTP does with files. */
ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags) {
  struct iovec to = *iov;
  ssize_t can = readable(fd, to.iov_len, at);

  if (n != 1) abort();
  if (can < 0) return -1;
  to.iov_len = (size_t)can;
  return syscall(SYS_preadv2, fd, &to, 1, at, 0L, flags);
}

/* The name by which SQLite calls it. */
ssize_t pread64(int fd, void *to, size_t n, off_t at) {
  return pread(fd, to, n, at);
}

ssize_t read(int fd, void *to, size_t n) {
  off_t at = orders->read_errno == 0 ? -1 : lseek(fd, 0, SEEK_CUR);
  ssize_t can = at < 0 ? (ssize_t)n : readable(fd, n, at); /* -1: not a file */

  return can < 0 ? -1 : syscall(SYS_read, fd, to, (size_t)can);
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
