/* SPDX-License-Identifier: Apache-2.0 */
/* Fails in turn every call of the store that can fail, in a process of its own (reliability.md, rows 9 and 10): none
 * crashes or hangs, and after a start without failures all that was acked is there, once.
 *
 * The calls are replaced here by functions of the same name, which count while they are armed. The short form
 * fails every so-manieth call, another choice for each error; TC_FULL=1 fails them all. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/patience.h"
#include "support/store_child.h"

enum { SHORT = -1, LIES = -2 }; /* in the place of an errno */
enum { STOP_SEQ = 1 + 3 * (TT_CHILD_BATCHES + 1) };

/* Shared with the child. */
static struct sweep {
  atomic_bool armed;
  atomic_uint io_calls, allocations;
  unsigned fail_io, fail_allocation; /* this one; 0: none */
  bool and_all_after;
  int error;
} * sweep;

/* ---- I/O */

static bool io_fails(void) {
  if (sweep == NULL || !sweep->armed) return false;
  unsigned n = ++sweep->io_calls;
  return sweep->fail_io != 0 && n == sweep->fail_io;
}

/* Sets errno; SHORT and LIES have a meaning for some calls only, and are EIO for the others. */
static bool io_error(void) {
  if (!io_fails()) return false;
  errno = sweep->error > 0 ? sweep->error : EIO;
  return true;
}

static int sync_fd(long call, int fd) {
  if (!io_error()) return (int)syscall(call, fd);
  /* The kernel drops the pages and reports the error once; the next sync would succeed. */
  if (sweep->error == LIES) (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  return -1;
}

int fdatasync(int fd) {
  return sync_fd(SYS_fdatasync, fd);
}

int fsync(int fd) {
  return sync_fd(SYS_fsync, fd);
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t offset) {
  if (!io_fails()) return syscall(SYS_pwritev, fd, iov, n, offset, 0L);
  if (sweep->error == SHORT)
    return syscall(SYS_pwrite64, fd, iov->iov_base, (iov->iov_len + 1) / 2, offset);
  errno = sweep->error > 0 ? sweep->error : EIO;
  return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) {
  if (!io_fails()) return syscall(SYS_pwrite64, fd, bytes, n, offset);
  if (sweep->error == SHORT) return syscall(SYS_pwrite64, fd, bytes, (n + 1) / 2, offset);
  errno = sweep->error > 0 ? sweep->error : EIO;
  return -1;
}

int openat(int dir, const char *path, int flags, ...) {
  va_list args;

  va_start(args, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(args, unsigned) : 0;
  va_end(args);
  return io_error() ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
  return io_error() ? -1 : (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
  return io_error() ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int unlinkat(int dir, const char *path, int flags) {
  return io_error() ? -1 : (int)syscall(SYS_unlinkat, dir, path, flags);
}

int mkdirat(int dir, const char *path, mode_t mode) {
  return io_error() ? -1 : (int)syscall(SYS_mkdirat, dir, path, mode);
}

int fallocate(int fd, int mode, off_t offset, off_t len) {
  return io_error() ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

int ftruncate(int fd, off_t len) {
  return io_error() ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

/* ---- memory; a sanitizer has its own */

#ifndef TC_SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static bool allocation_fails(void) {
  if (sweep == NULL || !sweep->armed) return false;
  unsigned n = ++sweep->allocations;
  bool fails =
      sweep->fail_allocation != 0 &&
      (n == sweep->fail_allocation || (sweep->and_all_after && n > sweep->fail_allocation));
  if (fails) errno = ENOMEM;
  return fails;
}

void *malloc(size_t bytes) {
  return allocation_fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
  return allocation_fails() ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes) {
  return allocation_fails() ? NULL : __libc_realloc(old, bytes);
}

void *reallocarray(void *old, size_t n, size_t bytes) {
  if (bytes != 0 && n > SIZE_MAX / bytes) return NULL;
  return realloc(old, n * bytes);
}
#endif

/* ---- a run with one fault, and one without */

static struct tt_store store;

static void make_folder(void) {
  tt_store_make(&store);
  store.config.log_file_bytes = 1 << 20;
  store.config.segment_generations_max = 2;
}

static void open_folder(void) {
  sweep = mmap(NULL, sizeof *sweep, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  make_folder();
}

static void remove_folder(void) {
  tt_store_remove(&store);
}

TestSuite(store_sweep, .init = open_folder, .fini = remove_folder);

/* Returns the child's exit code, -1 if it was killed because it was silent for so long. */
static int run_child(uint64_t stop_seq, bool armed, int silent_s, uint64_t acked[TT_CHILD_STREAMS],
                     const char *what) {
  int fds[2], status;

  cr_assert_eq(pipe(fds), 0);
  pid_t pid = fork();
  if (pid == 0) {
    close(fds[0]);
    if (freopen("/dev/null", "w", stderr) == NULL) _exit(9);
    if (armed) sweep->io_calls = sweep->allocations = 0;
    sweep->armed = armed;
    tt_child_run(&store, fds[1], stop_seq);
  }
  close(fds[1]);
  bool ended = tt_child_follow(fds[0], 0, silent_s, acked);
  if (!ended) kill(pid, SIGKILL);
  close(fds[0]);
  cr_assert_eq(waitpid(pid, &status, 0), pid);
  sweep->armed = false;
  if (!ended) return -1;
  cr_assert(WIFEXITED(status), "%s: signal %d", what, WTERMSIG(status));
  return WEXITSTATUS(status);
}

/* Writes into a fresh folder with the fault, then without, and proves the result. If memory never comes back, so that
 * the child itself can do nothing, it may be silent. */
static void try_fault(const char *what) {
  uint64_t acked[TT_CHILD_STREAMS] = { 0 }, most = STOP_SEQ;

  remove_folder();
  make_folder();
  int code = run_child(STOP_SEQ, true, sweep->and_all_after ? 1 : TT_PATIENCE_S, acked, what);
  cr_assert(code == TT_CHILD_DONE || code == TT_CHILD_NO_START || code == TT_CHILD_REFUSED ||
                (code == -1 && sweep->and_all_after),
            "%s: ended with %d", what, code);
  for (int i = 0; i < TT_CHILD_STREAMS; i++)
    if (acked[i] > most) most = acked[i];
  code = run_child(tt_child_border(most), false, TT_PATIENCE_S, acked, what);
  cr_assert_eq(code, TT_CHILD_DONE, "%s: the next start ended with %d", what, code);
  tt_child_expect(&store, acked, what);
}

/* Counts the calls of a run without faults; the number varies a little between runs, since threads
 * race. */
static unsigned count_calls(const atomic_uint *calls) {
  sweep->fail_io = sweep->fail_allocation = 0;
  try_fault("nothing fails");
  return *calls; /* the second run of it was not armed and counted nothing */
}

Test(store_sweep, every_io_call_fails_in_turn) {
  static const struct {
    int error;
    const char *name;
  } errors[] = {
    { EIO, "EIO" }, { ENOSPC, "ENOSPC" }, { EINTR, "EINTR" }, { SHORT, "short" }, { LIES, "lies" }
  };
  char what[64];

  unsigned total = count_calls(&sweep->io_calls), step = tt_full() ? 1 : 61, tried = 0;
  for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
    for (unsigned n = 1 + (tt_full() ? 0 : (unsigned)e * 12); n <= total; n += step, tried++) {
      snprintf(what, sizeof what, "I/O call %u of %u, %s", n, total, errors[e].name);
      sweep->fail_io = n;
      sweep->error = errors[e].error;
      try_fault(what);
    }
  fprintf(stderr, "%u I/O calls, %u failures tried\n", total, tried);
}

#ifndef TC_SANITIZED
Test(store_sweep, every_allocation_fails_in_turn) {
  char what[64];

  unsigned total = count_calls(&sweep->allocations), step = tt_full() ? 1 : 499, tried = 0;
  for (int after = 0; after < 2; after++)
    for (unsigned n = 1 + (unsigned)after * 240; n <= total;
         n += after ? 11 * step : step, tried++) {
      snprintf(what, sizeof what, "allocation %u of %u%s", n, total,
               after ? " and all after it" : "");
      sweep->fail_allocation = n;
      sweep->and_all_after = after;
      try_fault(what);
    }
  fprintf(stderr, "%u allocations, %u failures tried\n", total, tried);
}
#endif
