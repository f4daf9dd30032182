/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of the folder between a daemon and the tools that change it, on a disk and on a
 * network file system. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "archive/audit/audit.h"
#include "archive/audit/private.h"

static char path[] = "/tmp/tc-state-XXXXXX";
static int state = -1;
static bool is_network;      /* its file system locks no folder */
static int question = -1;    /* this question's lock, which is released */
static unsigned until_taken; /* after so many attempts of others to lock */

int flock(int fd, int how) {
  struct stat st;

  if (is_network && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
    errno = EBADF;
    return -1;
  }
  if (question >= 0 && fd != question && how == (LOCK_EX | LOCK_NB) && until_taken-- == 0) {
    close(question);
    question = -1;
  }
  return (int)syscall(SYS_flock, fd, how);
}

static void make(void) {
  strcpy(path + strlen(path) - 6, "XXXXXX");
  cr_assert_not_null(mkdtemp(path));
  state = open(path, O_RDONLY | O_DIRECTORY);
}

static void unmake(void) {
  char command[64];

  is_network = false;
  close(state);
  snprintf(command, sizeof command, "rm -r %s", path);
  cr_assert_eq(system(command), 0);
}

TestSuite(state_dir, .init = make, .fini = unmake);

static void expect_refused(void) {
  struct tc_statedir dirs;
  struct tb_diag diag = { 0 };
  char words[128];

  cr_assert_eq(tc_statedir_open(path, &diag, &dirs), TB_REFUSED, "%s", diag.text);
  snprintf(words, sizeof words, "%s/LOCK: the folder is in use by process %d", path, getpid());
  cr_assert_str_eq(diag.text, words);
}

/* A tool locks first, then a daemon locks first: the second one is refused each time. */
static void expect_one_at_a_time(void) {
  struct tc_statedir_lock lock;
  struct tc_statedir dirs;
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc__take_lock(state, &diag, &lock), TB_OK, "%s", diag.text);
  cr_assert(tc_statedir_is_locked(state));
  expect_refused();
  tc_statedir_unlock(&lock);
  cr_assert_not(tc_statedir_is_locked(state));
  cr_assert_eq(tc_statedir_open(path, &diag, &dirs), TB_OK, "%s", diag.text);
  cr_assert(tc_statedir_is_locked(state));
  cr_assert_eq(tc__take_lock(state, &diag, &lock), TB_REFUSED);
  cr_assert_str_eq(diag.text, "a running collector has this folder; stop it first");
  expect_refused();
  tc_statedir_close(&dirs);
}

Test(state_dir, a_tool_and_a_daemon_have_it_one_at_a_time) {
  expect_one_at_a_time();
}

Test(state_dir, they_do_where_the_file_system_locks_no_folder) {
  is_network = true;
  expect_one_at_a_time();
}

Test(state_dir, a_file_that_was_removed_lets_no_second_one_in) {
  struct tc_statedir_lock lock;
  struct tc_statedir dirs;
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc__take_lock(state, &diag, &lock), TB_OK, "%s", diag.text);
  cr_assert_eq(unlinkat(state, "LOCK", 0), 0);
  cr_assert_eq(tc_statedir_open(path, &diag, &dirs), TB_REFUSED);
  tc_statedir_unlock(&lock);
}

/* tracectl verify asks whether a collector runs, at the moment when a collector starts. */
Test(state_dir, one_who_only_asks_keeps_no_daemon_out) {
  struct tc_statedir dirs;
  struct tb_diag diag = { 0 };

  question = open(path, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(flock(question, LOCK_SH | LOCK_NB), 0);
  until_taken = 2;
  cr_assert_eq(tc_statedir_open(path, &diag, &dirs), TB_OK, "%s", diag.text);
  tc_statedir_close(&dirs);
}
