/* SPDX-License-Identifier: Apache-2.0 */
#include "support/store_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LINE_BYTES = 256 };

static struct {
  pthread_mutex_t lock;
  char folder[80]; /* of the store, with a slash */
  char lines[TT_CALLS_MAX][LINE_BYTES];
  int n;
  char after[LINE_BYTES]; /* empty: what matches fails already */
  char pattern[LINE_BYTES];
  int error;
  unsigned times, failed;
  char hold[LINE_BYTES]; /* empty: none is held */
  unsigned held;
  pthread_cond_t release;
} calls = { .lock = PTHREAD_MUTEX_INITIALIZER, .release = PTHREAD_COND_INITIALIZER };

static atomic_bool watching;

void tt_calls_watch(const struct tt_store *t) {
  pthread_mutex_lock(&calls.lock);
  calls.n = 0;
  calls.times = calls.failed = 0;
  if (t != NULL) snprintf(calls.folder, sizeof calls.folder, "%s/", t->dir);
  watching = t != NULL;
  pthread_mutex_unlock(&calls.lock);
  tt_calls_hold(NULL);
}

void tt_calls_fail(const char *pattern, int error, unsigned times) {
  tt_calls_fail_after("", pattern, error, times);
}

void tt_calls_fail_after(const char *after, const char *pattern, int error, unsigned times) {
  pthread_mutex_lock(&calls.lock);
  snprintf(calls.after, sizeof calls.after, "%s", after);
  snprintf(calls.pattern, sizeof calls.pattern, "%s", pattern);
  calls.error = error;
  calls.times = times;
  pthread_mutex_unlock(&calls.lock);
}

unsigned tt_calls_failed(void) {
  pthread_mutex_lock(&calls.lock);
  unsigned failed = calls.failed;
  pthread_mutex_unlock(&calls.lock);
  return failed;
}

void tt_calls_hold(const char *pattern) {
  pthread_mutex_lock(&calls.lock);
  snprintf(calls.hold, sizeof calls.hold, "%s", pattern != NULL ? pattern : "");
  pthread_cond_broadcast(&calls.release);
  pthread_mutex_unlock(&calls.lock);
}

unsigned tt_calls_held(void) {
  pthread_mutex_lock(&calls.lock);
  unsigned held = calls.held;
  pthread_mutex_unlock(&calls.lock);
  return held;
}

int tt_call(const char *pattern, int from) {
  int found = -1;

  pthread_mutex_lock(&calls.lock);
  for (int i = from; i >= 0 && i < calls.n && found < 0; i++)
    if (fnmatch(pattern, calls.lines[i], 0) == 0) found = i;
  pthread_mutex_unlock(&calls.lock);
  return found;
}

/* ---- the calls */

/* Gets the path relative to the state folder; returns false if the file is elsewhere. */
static bool place_of(int fd, const char *name, char out[LINE_BYTES]) {
  char link[64], path[LINE_BYTES];
  size_t len = strlen(calls.folder);

  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 2);
  if (n <= 0) return false;
  path[n] = '/';
  path[n + 1] = '\0';
  if (strncmp(path, calls.folder, len) != 0) return false;
  snprintf(out, LINE_BYTES, "%s%s", path + len, name);
  if (*out == '\0') strcpy(out, ".");
  size_t end = strlen(out);
  if (out[end - 1] == '/') out[end - 1] = '\0';
  return true;
}

static void wait_while_held(const char *line) {
  calls.held++;
  while (calls.hold[0] != '\0' && fnmatch(calls.hold, line, 0) == 0)
    pthread_cond_wait(&calls.release, &calls.lock);
  calls.held--;
}

/* Records the line. Returns false, with errno set, if the call is to fail. */
static bool pass(const char *call, int fd, const char *name, int to_fd, const char *to) {
  char from_place[LINE_BYTES], to_place[LINE_BYTES] = "", line[LINE_BYTES];
  int before = errno;
  bool fails = false;

  if (!watching) return true;
  pthread_mutex_lock(&calls.lock);
  if (place_of(fd, name, from_place) && (to == NULL || place_of(to_fd, to, to_place))) {
    snprintf(line, sizeof line, "%s %.120s%s%.120s", call, from_place, to != NULL ? " " : "",
             to_place);
    wait_while_held(line);
    bool armed = calls.after[0] == '\0';
    fails = armed && calls.times > 0 && fnmatch(calls.pattern, line, 0) == 0;
    if (!armed && fnmatch(calls.after, line, 0) == 0) calls.after[0] = '\0';
    if (fails) {
      calls.times--;
      calls.failed++;
    } else if (calls.n < TT_CALLS_MAX) {
      strcpy(calls.lines[calls.n++], line);
    }
  }
  int error = calls.error;
  pthread_mutex_unlock(&calls.lock);
  errno = fails ? error : before;
  return !fails;
}

int openat(int dir, const char *path, int flags, ...) {
  va_list args;

  va_start(args, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, unsigned) : 0;
  va_end(args);
  if (!pass(flags & O_CREAT ? "create" : "open", dir, path, -1, NULL)) return -1;
  return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int fsync(int fd) {
  return pass("sync", fd, "", -1, NULL) ? (int)syscall(SYS_fsync, fd) : -1;
}

int fdatasync(int fd) {
  return pass("sync", fd, "", -1, NULL) ? (int)syscall(SYS_fdatasync, fd) : -1;
}

int ftruncate(int fd, off_t bytes) {
  return pass("truncate", fd, "", -1, NULL) ? (int)syscall(SYS_ftruncate, fd, bytes) : -1;
}

int faccessat(int dir, const char *name, int mode, int flags) {
  if (!pass("look", dir, name, -1, NULL)) return -1;
  return (int)syscall(SYS_faccessat2, dir, name, mode, flags);
}

int fstatat(int dir, const char *name, struct stat *out, int flags) {
  if (!pass("stat", dir, name, -1, NULL)) return -1;
  return (int)syscall(SYS_newfstatat, dir, name, out, flags);
}

int unlinkat(int dir, const char *name, int flags) {
  return pass("unlink", dir, name, -1, NULL) ? (int)syscall(SYS_unlinkat, dir, name, flags) : -1;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
  if (!pass("rename", from_dir, from, to_dir, to)) return -1;
  return (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
  if (!pass("rename", from_dir, from, to_dir, to)) return -1;
  return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

struct dirent *readdir(DIR *dir) {
  if (!pass("list", dirfd(dir), "", -1, NULL)) return NULL;
  return ((__typeof__(&readdir))dlsym(RTLD_NEXT, "readdir"))(dir);
}

ssize_t pread(int fd, void *out, size_t n, off_t offset) {
  return pass("read", fd, "", -1, NULL) ? syscall(SYS_pread64, fd, out, n, offset) : -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) {
  return pass("write", fd, "", -1, NULL) ? syscall(SYS_pwrite64, fd, bytes, n, offset) : -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t offset) { /* SQLite's */
  return pass("write", fd, "", -1, NULL) ? syscall(SYS_pwrite64, fd, bytes, n, offset) : -1;
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t offset) {
  return pass("write", fd, "", -1, NULL) ? syscall(SYS_pwritev, fd, iov, n, offset, 0L) : -1;
}
