/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/patience.h"
#include "tools/actions/exec.h"

static char pids[] = "/tmp/tc-exec-XXXXXX"; /* a line each */
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

/* Two sessions of their own, one of them begun by a child that is gone; then what is said. */
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

/* It stops us itself, when both are there. */
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
