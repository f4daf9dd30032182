/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/exec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

extern char **environ;

enum {
  KILL_MS = 5000, /* wait for processes that do not die at once */
  LOOK_MS = 20,   /* polling interval without a pidfd */
};

/* How to start the command. Made before fork(): in the child of a program with threads nothing may be allocated, since another
 * thread may have held the allocator's lock. */
struct how {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
};

static void how_free(struct how *how) {
  posix_spawnattr_destroy(&how->attr);
  posix_spawn_file_actions_destroy(&how->files);
}

/* Returns an errno. */
static int how_make(int stdin_fd, struct how *how) {
  sigset_t none, all;

  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&how->files);
  posix_spawnattr_init(&how->attr);
  posix_spawnattr_setflags(&how->attr,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&how->attr, &none);
  posix_spawnattr_setsigdefault(&how->attr, &all);
  int failed = posix_spawn_file_actions_adddup2(&how->files, stdin_fd, STDIN_FILENO);
  if (failed == 0)
    failed = posix_spawn_file_actions_addclosefrom_np(&how->files, STDERR_FILENO + 1);
  if (failed != 0) how_free(how);
  return failed;
}

/* ---- the warden: a process between us and the command ---- */

/* Processes that the command leaves behind become children of its warden, whatever their group or session; those of other
 * commands do not. */
struct report {
  int failed; /* an errno if the command could not be started */
  int status; /* from waitpid() */
};

static bool close_ranges(unsigned low, unsigned high) {
  return (low <= STDERR_FILENO + 1 || close_range(STDERR_FILENO + 1, low - 1, 0) == 0) &&
         (high <= low + 1 || close_range(low + 1, high - 1, 0) == 0) &&
         close_range(high + 1, ~0u, 0) == 0;
}

/* Closes all descriptors between and above a and b: inherited ones of other commands would keep their wardens waiting.
 * close_range() is missing before Linux 5.9, or if a filter forbids it. */
static void keep_open_only(int a, int b) {
  if (close_ranges((unsigned)(a < b ? a : b), (unsigned)(a < b ? b : a))) return;
  _Alignas(struct dirent64) char entries[4096];
  ssize_t n;
  int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) {
    for (int fd = STDERR_FILENO + 1; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
      if (fd != a && fd != b) close(fd);
    return;
  }
  while ((n = getdents64(dir, entries, sizeof entries)) > 0)
    for (ssize_t at = 0; at < n;) {
      const struct dirent64 *entry = (const void *)(entries + at);
      int fd = atoi(entry->d_name);
      if (fd > STDERR_FILENO && fd != a && fd != b && fd != dir) close(fd);
      at += entry->d_reclen;
    }
  close(dir);
}

/* Kills those that are children now. Returns false if the kernel does not say which. */
static bool kill_children(void) {
  char path[64], text[4096];

  snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)syscall(SYS_gettid));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  char *rest = text;
  for (const char *word; (word = strsep(&rest, " ")) != NULL && rest != NULL;)
    /* without a space after it, the word may be cut off */
    kill((pid_t)strtol(word, NULL, 10), SIGKILL);
  return true;
}

/* The children of a child that dies become the warden's: repeats until there are none. */
static void kill_all(pid_t group) {
  kill(-group, SIGKILL);
  for (unsigned ms = 0; ms < KILL_MS && kill_children(); ms++) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) continue;
    if (pid < 0 && errno == ECHILD) return;
    poll(NULL, 0, 1);
  }
}

static bool is_dead(pid_t pid) {
  siginfo_t info = { .si_pid = 0 };

  return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Waits until the command ends, or the other side closes the line. Returns true if the command ended; the caller must still
 * reap it. Without a pidfd (before Linux 5.3) this function polls. */
static bool has_ended(pid_t pid, int line) {
  int ends = (int)syscall(SYS_pidfd_open, pid, 0);
  struct pollfd fds[] = { { .fd = line, .events = POLLIN }, { .fd = ends, .events = POLLIN } };

  for (;;) {
    int n = poll(fds, 2, ends >= 0 ? -1 : LOOK_MS);
    if (is_dead(pid)) return true;
    if (n > 0 && fds[0].revents != 0) return false;
  }
}

/* Must not allocate. */
_Noreturn static void be_warden(const struct ac_action *action, const struct how *how, int stdin_fd,
                                int line) {
  struct report report = { .status = 0 };
  pid_t pid;

  keep_open_only(stdin_fd, line);
  signal(SIGCHLD, SIG_DFL); /* if ignored, the command's status would be lost */
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  report.failed =
      posix_spawn(&pid, action->argv[0], &how->files, &how->attr, action->argv, environ);
  close(stdin_fd);
  if (report.failed == 0) {
    if (has_ended(pid, line)) waitpid(pid, &report.status, 0);
    kill_all(pid);
  }
  _exit(write(line, &report, sizeof report) == sizeof report ? 0 : 1);
}

/* The text fits into the pipe's buffer: this does not wait for the command. */
static int put_text(const struct ac_task *task, int *out_fd) {
  int ends[2];

  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  int failed = write(ends[1], task->text, task->len) == (ssize_t)task->len ? 0 : errno;
  close(ends[1]);
  *out_fd = ends[0];
  if (failed != 0) close(ends[0]);
  return failed;
}

struct warden {
  pid_t pid;
  int line; /* carries the report; closing it ends the warden */
};

/* Returns an errno. Closes stdin_fd in any case. */
static int start_warden(const struct ac_action *action, int stdin_fd, struct warden *out) {
  struct how how;
  int line[2];

  int failed = how_make(stdin_fd, &how);
  if (failed == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) != 0) {
    failed = errno;
    how_free(&how);
  }
  if (failed == 0) {
    *out = (struct warden){ .pid = fork(), .line = line[0] };
    if (out->pid == 0) {
      close(line[0]); /* or the warden would hold its own line open */
      be_warden(action, &how, stdin_fd, line[1]);
    }
    failed = out->pid < 0 ? errno : 0;
    close(line[1]);
    if (failed != 0) close(line[0]);
    how_free(&how);
  }
  close(stdin_fd);
  return failed;
}

enum how_ended { ENDED, TOO_LONG, STOPPED };

/* No process of the command is left in any case. */
static enum how_ended wait_for(const struct warden *warden, int stop_fd, struct report *out) {
  struct pollfd fds[] = { { .fd = warden->line, .events = POLLIN },
                          { .fd = stop_fd, .events = POLLIN } };
  int n = poll(fds, 2, AC_EXEC_S * 1000);

  while (n < 0 && errno == EINTR) n = poll(fds, 2, AC_EXEC_S * 1000);
  enum how_ended how = n > 0 ? fds[0].revents != 0 ? ENDED : STOPPED : TOO_LONG;
  *out = (struct report){ .failed = EIO };
  if (how == ENDED && read(warden->line, out, sizeof *out) != sizeof *out) out->failed = EIO;
  close(warden->line);
  while (waitpid(warden->pid, NULL, 0) < 0 && errno == EINTR) continue;
  return how;
}

static enum ac_outcome say_end(int status, struct tb_diag *diag) {
  if (WIFSIGNALED(status)) {
    tb_fail(diag, TB_IO, "ended by signal %d", WTERMSIG(status));
    return AC_FAILED;
  }
  if (WEXITSTATUS(status) == 0) return AC_DONE;
  tb_fail(diag, TB_IO, "exit code %d", WEXITSTATUS(status));
  return WEXITSTATUS(status) == EX_TEMPFAIL ? AC_LATER : AC_FAILED;
}

static enum ac_outcome say_failed(const struct ac_action *action, int failed,
                                  struct tb_diag *diag) {
  tb_fail(diag, TB_IO, "%s: %s", action->argv[0], strerror(failed));
  return failed == EAGAIN || failed == ENOMEM || failed == EMFILE || failed == ENFILE ? AC_LATER
                                                                                      : AC_FAILED;
}

enum ac_outcome ac_exec(const struct ac_action *action, const struct ac_task *task, int stop_fd,
                        struct tb_diag *diag) {
  struct warden warden = { .pid = -1 };
  struct report report;
  int stdin_fd;
  int failed = put_text(task, &stdin_fd);

  if (failed == 0) failed = start_warden(action, stdin_fd, &warden);
  if (failed != 0) return say_failed(action, failed, diag);
  switch (wait_for(&warden, stop_fd, &report)) {
  case ENDED:
    return report.failed == 0 ? say_end(report.status, diag)
                              : say_failed(action, report.failed, diag);
  case STOPPED: tb_fail(diag, TB_BUSY, "stopped"); return AC_LATER;
  case TOO_LONG: break;
  }
  tb_fail(diag, TB_IO, "killed after %d s", AC_EXEC_S);
  return AC_FAILED;
}
