/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/patience.h"
#include "tools/actions/exec.h"

static char pids[] = "/tmp/tc-exec-XXXXXX"; /* one per line */
static char shell[] = "/bin/sh", option[] = "-c", script[512];
static struct tb_diag diag;

static void make(void) {
  int fd = mkstemp(pids);

  cr_assert_geq(fd, 0);
  close(fd);
}

static void unmake(void) {
  unlink(pids);
}

TestSuite(exec, .init = make, .fini = unmake);

/* Starts two processes in sessions of their own, one of them from a child that has ended. Then runs the commands in `then`. */
static enum ac_outcome run(const char *then, int stop_fd) {
  const struct ac_action action = { .kind = AC_EXEC, .argv = { shell, option, script } };
  char text[] = "rule: slow\n";
  const struct ac_task task = { .id = 1, .text = text, .len = strlen(text) };

  snprintf(script, sizeof script,
           "one='echo $$ >> %s; exec sleep 1000'; setsid sh -c \"$one\" & "
           "sh -c \"setsid sh -c '$one' & \"; "
           "until [ $(wc -l < %s) = 2 ]; do sleep 0.01; done; %s",
           pids, pids, then);
  tb_diag_clear(&diag);
  return ac_exec(&action, &task, stop_fd, &diag);
}

static void both_are_dead(void) {
  FILE *file = fopen(pids, "r");
  int pid, n = 0;

  for (; fscanf(file, "%d", &pid) == 1; n++) {
    cr_assert_eq(kill(pid, 0), -1, "%d lives", pid);
    cr_assert_eq(errno, ESRCH);
  }
  fclose(file);
  cr_assert_eq(n, 2);
}

Test(exec, what_a_command_leaves_running_ends_with_it) {
  cr_assert_eq(run("[ \"$(cat)\" = 'rule: slow' ]", -1), AC_DONE, "%s", diag.text);
  both_are_dead();
}

Test(exec, its_end_is_told) {
  cr_assert_eq(run("exit 7", -1), AC_FAILED);
  cr_assert_str_eq(diag.text, "exit code 7");
  both_are_dead();
}

Test(exec, its_signal_is_told) {
  cr_assert_eq(run("kill -TERM $$", -1), AC_FAILED);
  cr_assert_str_eq(diag.text, "ended by signal 15");
  both_are_dead();
}

/* The command itself ends the wait through the pipe, as soon as both processes run. */
Test(exec, one_that_is_stopped_leaves_nothing) {
  char then[128];
  int ends[2];

  cr_assert_eq(pipe(ends), 0);
  snprintf(then, sizeof then, "echo > /proc/%d/fd/%d; sleep 1000", (int)getpid(), ends[1]);
  cr_assert_eq(run(then, ends[0]), AC_LATER);
  cr_assert_eq(diag.rc, TB_BUSY);
  both_are_dead();
}

Test(exec, a_command_that_is_not_there_is_named) {
  static char nothing[] = "/bin/nothing-of-that-name";
  const struct ac_action action = { .kind = AC_EXEC, .argv = { nothing } };
  const struct ac_task task = { .id = 1, .text = nothing, .len = 1 };

  tb_diag_clear(&diag);
  cr_assert_eq(ac_exec(&action, &task, -1, &diag), AC_FAILED);
  cr_assert_str_eq(diag.text, "/bin/nothing-of-that-name: No such file or directory");
}

Test(exec, its_end_is_told_where_nobody_waits_for_children) {
  cr_assert_neq(signal(SIGCHLD, SIG_IGN), SIG_ERR);
  cr_assert_eq(run("exit 7", -1), AC_FAILED);
  cr_assert_str_eq(diag.text, "exit code 7");
  both_are_dead();
}

/* ---- commands that run at the same time ---- */

struct lasting {
  pthread_t thread;
  int stop[2];
  enum ac_outcome outcome;
  atomic_bool is_over;
};

static void *run_on(void *self) {
  static char sleeps[] = "exec sleep 1000";
  const struct ac_action action = { .kind = AC_EXEC, .argv = { shell, option, sleeps } };
  const struct ac_task task = { .id = 1, .text = sleeps, .len = 1 };
  struct lasting *l = self;
  struct tb_diag why;

  tb_diag_clear(&why);
  l->outcome = ac_exec(&action, &task, l->stop[0], &why);
  atomic_store(&l->is_over, true);
  return NULL;
}

/* Counts the wardens and their commands. */
static size_t processes(void) {
  char path[64], line[4096];
  size_t n = 0;
  FILE *pipe;

  snprintf(path, sizeof path, "pgrep -P $(pgrep -d, -P %d) sleep", (int)getpid());
  for (pipe = popen(path, "r"); fgets(line, sizeof line, pipe) != NULL;) n++;
  pclose(pipe);
  return n;
}

static void begin(struct lasting *l, size_t running) {
  cr_assert_eq(pipe(l->stop), 0);
  cr_assert_eq(pthread_create(&l->thread, NULL, run_on, l), 0);
  TT_WAIT_UNTIL(processes() == running);
}

static void stop(struct lasting *l) {
  close(l->stop[1]);
  TT_WAIT_UNTIL(atomic_load(&l->is_over));
  cr_assert_eq(pthread_join(l->thread, NULL), 0);
  cr_assert_eq(l->outcome, AC_LATER);
  close(l->stop[0]);
}

/* The warden of the second command does not have the first one's pipe. */
static void each_ends_by_itself(void) {
  static struct lasting first, second;

  begin(&first, 1);
  begin(&second, 2);
  stop(&first);
  cr_assert_not(atomic_load(&second.is_over));
  stop(&second);
}

Test(exec, one_that_is_stopped_does_not_wait_for_another) {
  each_ends_by_itself();
}

/* ---- while other threads allocate ---- */

enum { COMMANDS = 100, BLOCKS = 1000, BLOCK_BYTES = 256 };

static atomic_bool enough;

static void *allocate(void *self) {
  static void *blocks[BLOCKS];

  while (!atomic_load(&enough)) {
    for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(BLOCK_BYTES);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
  }
  return self;
}

static void *run_true(void *self) {
  static char true_path[] = "/bin/true";
  const struct ac_action action = { .kind = AC_EXEC, .argv = { true_path } };
  const struct ac_task task = { .id = 1, .text = true_path, .len = 1 };
  enum ac_outcome *outcome = self;
  struct tb_diag why;

  tb_diag_clear(&why);
  *outcome = ac_exec(&action, &task, -1, &why);
  return NULL;
}

/* If another thread holds an allocator's lock at fork(), the lock stays locked in the child,
 * unless the allocator is libc's. */
Test(exec, a_warden_allocates_nothing) {
  pthread_t other, thread;

  cr_assert_eq(pthread_create(&other, NULL, allocate, NULL), 0);
  for (int i = 0; i < COMMANDS; i++) {
    enum ac_outcome outcome = AC_FAILED;
    cr_assert_eq(pthread_create(&thread, NULL, run_true, &outcome), 0); /* without free blocks */
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(outcome, AC_DONE);
  }
  atomic_store(&enough, true);
  cr_assert_eq(pthread_join(other, NULL), 0);
}

/* ---- a kernel without the newer calls ---- */

static void forbid(int error) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = { sizeof code / sizeof *code, code };

  cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  cr_assert_eq(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), 0, "errno %d", errno);
}

Test(exec, an_old_kernel_does_it_all) {
  forbid(ENOSYS);
  cr_assert_eq(run("exit 7", -1), AC_FAILED);
  cr_assert_str_eq(diag.text, "exit code 7");
  both_are_dead();
  each_ends_by_itself();
}

Test(exec, a_filter_that_forbids_newer_calls_is_no_hindrance) {
  forbid(EPERM);
  cr_assert_eq(run("exit 7", -1), AC_FAILED);
  cr_assert_str_eq(diag.text, "exit code 7");
  each_ends_by_itself();
}
