/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

extern char **environ;

static int spawn(const struct ac_action *action, int stdin_fd, pid_t *out) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  sigset_t none, all;

  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attr);
  posix_spawn_file_actions_adddup2(&files, stdin_fd, STDIN_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_setflags(&attr,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setsigdefault(&attr, &all);
  int failed = posix_spawn(out, action->argv[0], &files, &attr, action->argv, environ);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&files);
  return failed;
}

/* Text is shorter than what a pipe holds: this does not wait for the command. */
static int start(const struct ac_action *action, const struct ac_task *task, pid_t *out) {
  int ends[2];

  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  int failed = write(ends[1], task->text, task->len) == (ssize_t)task->len ? 0 : errno;
  close(ends[1]);
  if (failed == 0) failed = spawn(action, ends[0], out);
  close(ends[0]);
  return failed;
}

enum how_ended { ENDED, TOO_LONG, STOPPED };

static enum how_ended wait_for(pid_t pid, int stop_fd) {
  struct pollfd fds[] = { { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN },
                          { .fd = stop_fd, .events = POLLIN } };
  int n = poll(fds, 2, AC_EXEC_S * 1000);

  while (n < 0 && errno == EINTR) n = poll(fds, 2, AC_EXEC_S * 1000);
  close(fds[0].fd);
  if (n > 0 && fds[0].revents != 0) return ENDED;
  return n > 0 ? STOPPED : TOO_LONG;
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

enum ac_outcome ac_exec(const struct ac_action *action, const struct ac_task *task, int stop_fd,
                        struct tb_diag *diag) {
  pid_t pid;
  int status, failed = start(action, task, &pid);

  if (failed != 0) {
    tb_fail(diag, TB_IO, "%s: %s", action->argv[0], strerror(failed));
    return failed == EAGAIN || failed == ENOMEM || failed == EMFILE || failed == ENFILE ? AC_LATER
                                                                                        : AC_FAILED;
  }
  enum how_ended how = wait_for(pid, stop_fd);
  kill(-pid, SIGKILL); /* what it has left running, too */
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  switch (how) {
  case ENDED: return say_end(status, diag);
  case STOPPED: tb_fail(diag, TB_BUSY, "stopped"); return AC_LATER;
  case TOO_LONG: break;
  }
  tb_fail(diag, TB_IO, "killed after %d s", AC_EXEC_S);
  return AC_FAILED;
}
