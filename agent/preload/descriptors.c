/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the agent's descriptors from the program. A program that closes all open descriptors at its start would otherwise make
 * the agent read and write the files that the program opens next; and a program may rely on the order of the numbers it gets.
 *
 * So the agent's threads have a descriptor table of their own, as a process has. The program's table contains only the
 * descriptor that wakes the agent, which both sides need: for the program's calls it is not open. Its number is one that few
 * programs reach, and no higher: fork() copies a table up to its highest number, so one near a limit of 65,536 makes each fork
 * of a small program take three times as long. All of the agent's descriptors stay in the program's table if the kernel does
 * not give a thread a table of its own (before Linux 5.9, or if a container forbids unshare(2)), and if the agent has a spool
 * folder, whose lock a forked child must release.
 *
 * A successful system call does not prove that the table is ours: valgrind emulates the call, and drops the flag. So before
 * anything is closed, a descriptor is made here, and /proc must show that a thread of the program does not have it. Without
 * /proc nothing is closed, and the agent's descriptors are kept in the program's table. */
#include <sys/syscall.h>

#include "agent/host/filter.h"
#include "agent/preload/preload.h"

enum {
  FDS_MAX = 65536,   /* descriptors that can be marked as the agent's */
  NUMBER_MAX = 1024, /* descriptors are moved to numbers from NUMBER_MAX - BELOW_MAX on */
  BELOW_MAX = 64,
  LIMIT_MIN = 256,
  MARKER_LEAST = 200,
  TRIES = 4, /* each with another number: the program may open the same one meanwhile */
};

static __thread bool apart; /* this thread has a table of its own */
static _Atomic uint64_t agents[FDS_MAX / 64];
static atomic_int end; /* above the highest number that was ever in the set */

static bool is_agents(int fd) {
  return fd >= 0 && fd < FDS_MAX &&
         (atomic_load_explicit(&agents[fd / 64], memory_order_relaxed) & UINT64_C(1) << fd % 64) !=
             0;
}

/* Moves a descriptor to a high number, and returns that number; returns fd if it cannot be moved. */
static int raise_number(int fd) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < LIMIT_MIN) return fd;
  int least = (limit.rlim_cur > NUMBER_MAX ? NUMBER_MAX : (int)limit.rlim_cur) - BELOW_MAX;
  int high = fcntl(fd, F_DUPFD_CLOEXEC, least);
  if (high < 0) return fd;
  TA_REAL(close)(fd);
  return high;
}

static void add_to_set(int fd) {
  if (fd < 0 || fd >= FDS_MAX) return;
  atomic_fetch_or(&agents[fd / 64], UINT64_C(1) << fd % 64);
  int before = atomic_load(&end);
  while (before <= fd && !atomic_compare_exchange_weak(&end, &before, fd + 1))
    ;
}

static void remove_from_set(int fd) {
  if (fd >= 0 && fd < FDS_MAX) atomic_fetch_and(&agents[fd / 64], ~(UINT64_C(1) << fd % 64));
}

int ta_descriptors_keep(int fd) {
  if (!ta_is_agents() || apart || fd < 0) return fd;
  fd = raise_number(fd);
  add_to_set(fd);
  return fd;
}

TA_API int socket(int domain, int type, int protocol) {
  return ta_descriptors_keep(TA_REAL(socket)(domain, type, protocol));
}

TA_API int eventfd(unsigned value, int flags) {
  return ta_descriptors_keep(TA_REAL(eventfd)(value, flags));
}

static int refuse(int error) {
  errno = error;
  return -1;
}

TA_API int close(int fd) {
  if (TB_UNLIKELY(is_agents(fd)) && !apart) {
    if (!ta_agent_runs()) return refuse(EBADF);
    remove_from_set(fd);
  }
  return TA_REAL(close)(fd);
}

/* Closes a range of descriptors, except the agent's. */
static int close_others(unsigned first, unsigned last, int flags) {
  unsigned from = first;
  int answer = 0;

  for (int fd = 0; fd < atomic_load(&end); fd++) {
    if (!is_agents(fd) || (unsigned)fd < from || (unsigned)fd > last) continue;
    if ((unsigned)fd > from) answer |= TA_REAL(close_range)(from, (unsigned)fd - 1, flags);
    from = (unsigned)fd + 1;
  }
  return from > last && from != first ? answer : answer | TA_REAL(close_range)(from, last, flags);
}

TA_API int close_range(unsigned first, unsigned last, int flags) {
  return close_others(first, last, flags);
}

/* Returns 1 if the thread has that descriptor, 0 if it has not, -1 if this cannot be found out. */
static int thread_has(pid_t thread, int fd) {
  char path[64], target[1];

  snprintf(path, sizeof path, "/proc/self/task/%ld/fd/%d", (long)thread, fd);
  if (readlink(path, target, sizeof target) >= 0) return 1;
  return errno == ENOENT ? 0 : -1;
}

/* Returns a descriptor of the agent's that is in the program's table, or -1. */
static int shared_with(pid_t thread) {
  for (int fd = 0; fd < atomic_load(&end); fd++)
    if (is_agents(fd) && thread_has(thread, fd) == 1) return fd;
  return -1;
}

/* Returns true if the thread does not see a descriptor that is made here. An ended thread has no descriptors at all: so it
 * must still have the shared one afterwards. */
static bool thread_lacks_marker(pid_t thread, int shared, int least) {
  int marker = fcntl(shared, F_DUPFD_CLOEXEC, least);

  if (marker < 0) return false;
  add_to_set(marker); /* in case the table is the program's after all */
  bool lacks = thread_has(thread, marker) == 0 && thread_has(thread, shared) == 1;
  TA_REAL(close)(marker);
  remove_from_set(marker);
  return lacks;
}

/* The program's seccomp filter may kill it for either call. Without close_range() a table of its own would not help. */
struct ta_parting ta_descriptors_prepare(void) {
  struct ta_parting p = { .program = gettid() };

  if (getenv("TRACEAGENT_SPOOL_DIR") != NULL) return p;
  p.by_close_range = ta_filter_spares(SYS_close_range, ~0u, ~0u, CLOSE_RANGE_UNSHARE);
  p.by_unshare = p.by_close_range && ta_filter_spares(SYS_unshare, CLONE_FILES, 0, 0);
  return p;
}

static bool take_table(struct ta_parting p) {
  if (TA_REAL(close_range)(~0u, ~0u, CLOSE_RANGE_UNSHARE) == 0) return true;
  return p.by_unshare && unshare(CLONE_FILES) == 0;
}

static bool part(struct ta_parting p) {
  int shared = p.by_close_range ? shared_with(p.program) : -1;

  if (shared < 0 || !take_table(p)) return false;
  for (int i = 0; i < TRIES; i++)
    if (thread_lacks_marker(p.program, shared, MARKER_LEAST + i)) return true;
  return false;
}

/* Closes the program's descriptors in this thread's table, except stderr if messages may be written there. */
void ta_descriptors_part(struct ta_parting p, bool keep_stderr) {
  apart = part(p);
  if (!apart) return;
  if (keep_stderr) close_others(0, STDERR_FILENO - 1, 0);
  close_others(keep_stderr ? STDERR_FILENO + 1 : 0, ~0u, 0);
}

TA_API void closefrom(int first) {
  if (close_others(first < 0 ? 0 : (unsigned)first, ~0u, 0) == 0) return;
  for (int fd = first < 0 ? 0 : first; fd < (int)sysconf(_SC_OPEN_MAX); fd++) close(fd);
}

TA_API int dup2(int from, int to) {
  return TB_UNLIKELY(is_agents(to)) && to != from ? refuse(EBUSY) : TA_REAL(dup2)(from, to);
}

TA_API int dup3(int from, int to, int flags) {
  return TB_UNLIKELY(is_agents(to)) ? refuse(EBUSY) : TA_REAL(dup3)(from, to, flags);
}
