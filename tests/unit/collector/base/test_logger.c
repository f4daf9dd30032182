/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/base/logger.h"
#include "support/patience.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Criterion's own output must not mix with the log's. */
static int stderr_of_ours, stderr_before;

static void take_stderr(void) {
  FILE *file = tmpfile();

  cr_assert_not_null(file);
  stderr_of_ours = fileno(file);
  stderr_before = dup(STDERR_FILENO);
  cr_assert(stderr_before >= 0 && dup2(stderr_of_ours, STDERR_FILENO) >= 0);
}

static void give_back(void) {
  dup2(stderr_before, STDERR_FILENO);
}

TestSuite(journal, .init = take_stderr, .fini = give_back);

static unsigned lines_with(const char *text) {
  static char all[1 << 20];
  ssize_t n = pread(stderr_of_ours, all, sizeof all - 1, 0);
  unsigned lines = 0;

  cr_assert(n >= 0);
  all[n] = '\0';
  for (const char *at = all; (at = strstr(at, text)) != NULL; at++) lines++;
  return lines;
}

Test(journal, two_sites_with_one_format_have_a_limit_each) {
  for (int i = 0; i < 100; i++) tc_log(TC_NOTICE, "store", "%s", "retention");
  tc_log(TC_ERROR, "store", "%s", "input/output error");
  cr_assert_eq(lines_with("retention"), TC_LOG_BURST);
  cr_assert_eq(lines_with("input/output error"), 1);
}

Test(journal, many_sites_never_reset_each_other) {
  static struct tc_log_site sites[500];

  for (int turn = 0; turn < 100; turn++)
    for (size_t i = 0; i < 500; i++) tc_log_at(&sites[i], 0, TC_WARN, "test", "in turn");
  cr_assert_eq(lines_with("in turn"), 500 * TC_LOG_BURST);
}

static void about(uint64_t stream) {
  tc_log_about(stream, TC_WARN, "analysis", "stream=%d: broken", (int)stream);
}

Test(journal, a_stream_that_floods_hides_no_other) {
  for (int i = 0; i < 1000; i++) about(1);
  about(2);
  cr_assert_eq(lines_with("stream=1: broken"), TC_LOG_BURST);
  cr_assert_eq(lines_with("stream=2: broken"), 1);
}

Test(journal, a_flood_of_streams_is_limited_too) {
  for (uint64_t i = 0; i < TT_LESS(100000, 2000); i++) about(i);
  cr_assert_eq(lines_with(": broken"), TC_LOG_SUBJECTS + TC_LOG_BURST);
}

Test(journal, the_count_of_what_was_left_out_is_logged) {
  for (int i = 0; i < 100; i++) about(7);
  tc_log_overdue();
  cr_assert_eq(lines_with("were left out"), 0, "the window is not over");
  tc_log_flush();
  cr_assert_eq(lines_with("80 more lines like"), 1);
  tc_log_flush();
  cr_assert_eq(lines_with("were left out"), 1, "a count is logged once");
}

Test(journal, a_fatal_reason_has_no_limit) {
  for (int i = 0; i < 100; i++) tc_log(TC_FATAL, "main", "wal: input/output error");
  cr_assert_eq(lines_with("fatal main: wal: input/output error"), 100);
}

Test(journal, a_note_has_its_own_site_and_severity) {
  static struct tc_log_site busy, other;

  for (int i = 0; i < 100; i++)
    tc_log_note("store", &(struct tc_note){ &busy, TC_NOTICE, 0, "%s", "retention" });
  tc_log_note("store", &(struct tc_note){ &other, TC_ERROR, 0, "%s", "nothing is acked" });
  cr_assert_eq(lines_with("notice store: retention"), TC_LOG_BURST);
  cr_assert_eq(lines_with("error store: nothing is acked"), 1);
}
