/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "collector/keep/keeps.h"

enum { A = 1, B = 2 };

static char dir[] = "/tmp/tc-keeps-XXXXXX";
static int state = -1;
static struct tc_keeps *keeps;
static struct tb_diag wrong;

static void open_keeps(void) {
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc_keeps_open(state, &diag, &wrong, &keeps), TB_OK, "%s", diag.text);
}

static void make_state(void) {
  cr_assert_not_null(mkdtemp(dir));
  state = open(dir, O_RDONLY | O_DIRECTORY);
  cr_assert_geq(state, 0);
  open_keeps();
}

static void remove_state(void) {
  tc_keeps_free(keeps);
  unlinkat(state, "kept", 0);
  close(state);
  rmdir(dir);
}

TestSuite(keeps, .init = make_state, .fini = remove_state);

static struct tc_keep stretch(const char *rule, uint64_t from, uint64_t until, uint64_t noted) {
  struct tc_keep keep = { .from_ns = from, .until_ns = until, .noted_ns = noted };

  snprintf(keep.rule, sizeof keep.rule, "%s", rule);
  return keep;
}

static void keep_stream(const char *rule, unsigned id, uint64_t from, uint64_t until,
                        uint64_t noted) {
  struct tc_keep keep = stretch(rule, from, until, noted);

  keep.of_stream = true;
  memset(keep.stream, (int)id, sizeof keep.stream);
  cr_assert_eq(tc_keeps_add(keeps, &keep), TB_OK);
}

static void keep_service(const char *rule, const char *service, uint64_t from, uint64_t until) {
  struct tc_keep keep = stretch(rule, from, until, 1);

  snprintf(keep.service, sizeof keep.service, "%s", service);
  cr_assert_eq(tc_keeps_add(keeps, &keep), TB_OK);
}

/* Returns the rule that keeps the segment, or "". */
static const char *kept_by(unsigned id, const char *service, uint64_t from, uint64_t until) {
  static char rule[TC_KEEP_RULE_MAX + 1];
  unsigned char stream[TC_STREAM_BYTES];

  memset(stream, (int)id, sizeof stream);
  rule[0] = '\0';
  cr_assert_eq(tc_keeps_meets(keeps, stream, service, from, until, NULL),
               tc_keeps_meets(keeps, stream, service, from, until, rule));
  return rule;
}

static void save_and_open_again(void) {
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc_keeps_save(keeps, &diag), TB_OK, "%s", diag.text);
  tc_keeps_free(keeps);
  open_keeps();
  cr_assert_eq(wrong.rc, TB_OK, "%s", wrong.text);
}

Test(keeps, a_stretch_keeps_what_it_meets_of_its_stream) {
  keep_stream("slow", A, 100, 200, 1);
  cr_assert_str_eq(kept_by(A, "shop", 200, 300), "slow");
  cr_assert_str_eq(kept_by(A, "shop", 0, 100), "slow");
  cr_assert_str_eq(kept_by(A, "shop", 120, 130), "slow");
  cr_assert_str_eq(kept_by(A, "shop", 0, 1000), "slow");
  cr_assert_str_eq(kept_by(A, "shop", 0, 99), "");
  cr_assert_str_eq(kept_by(A, "shop", 201, 300), "");
  cr_assert_str_eq(kept_by(B, "shop", 120, 130), "");
}

Test(keeps, a_service_and_all_of_them) {
  keep_service("stuck", "shop", 100, 200);
  keep_service("any", "", 400, 500);
  cr_assert_str_eq(kept_by(A, "shop", 150, 150), "stuck");
  cr_assert_str_eq(kept_by(A, "shop-2", 150, 150), "");
  cr_assert_str_eq(kept_by(B, "till", 450, 450), "any");
}

Test(keeps, stretches_of_one_rule_that_meet_are_one) {
  for (uint64_t t = 0; t < 1000; t++) keep_stream("slow", A, t * 10, t * 10 + 40, t);
  cr_assert_eq(tc_keeps_count(keeps), 1);
  keep_stream("slow", A, 20000, 20010, 1);
  keep_stream("slow", B, 0, 10, 1);
  keep_stream("other", A, 0, 10, 1);
  cr_assert_eq(tc_keeps_count(keeps), 4);
  keep_stream("slow", A, 10000, 20000, 1); /* closes the gap between two of them */
  cr_assert_eq(tc_keeps_count(keeps), 3);
  cr_assert_str_eq(kept_by(A, "shop", 15000, 15000), "slow");
}

Test(keeps, they_are_there_after_a_start) {
  keep_stream("slow", A, 100, 200, 7);
  keep_service("stuck", "shop", 300, 400);
  keep_service("any", "", 500, 600);
  save_and_open_again();
  cr_assert_eq(tc_keeps_count(keeps), 3);
  cr_assert_str_eq(kept_by(A, "x", 100, 100), "slow");
  cr_assert_str_eq(kept_by(B, "shop", 400, 400), "stuck");
  cr_assert_str_eq(kept_by(B, "x", 500, 500), "any");
  cr_assert_str_eq(kept_by(B, "x", 400, 400), "");
  tc_keeps_forget(keeps, 7);
  cr_assert_eq(tc_keeps_count(keeps), 1, "what was noted before is forgotten");
  cr_assert_str_eq(kept_by(A, "x", 100, 100), "slow");
  tc_keeps_forget(keeps, 8);
  save_and_open_again();
  cr_assert_eq(tc_keeps_count(keeps), 0);
}

Test(keeps, a_line_that_is_wrong_is_left_out_and_named) {
  static const char *const lines[] = {
    "",
    "1 2 3 rule",
    "2 1 3 rule all",
    "1 2 3 rule all more",
    "1 2 3 rule stream 07",
    "1 2 3 rule stream zz070707070707070707070707070707",
    "1 2 3 rule service",
    "1 2 3 rule folder shop",
    "1 2 3 rule service shop more",
    "x 2 3 rule all",
    "1 2 3 a-name-that-is-longer-than-any-rule-has all",
  };
  char text[300];
  struct tb_diag diag = { 0 };

  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    int n = snprintf(text, sizeof text, "1 2 3 good all\n%s\n1 2 3 fine all\n", lines[i]);
    cr_assert_eq(tc_file_replace(state, "kept", text, (size_t)n, &diag), TB_OK);
    tc_keeps_free(keeps);
    open_keeps();
    cr_assert_eq(tc_keeps_count(keeps), 2, "%s", lines[i]);
    cr_assert_eq(wrong.rc, TB_BROKEN, "%s", lines[i]);
    cr_assert_str_eq(wrong.text, "kept line 2 is not understood", "%s", lines[i]);
  }
}

Test(keeps, there_is_an_end_to_them) {
  for (uint64_t t = 0; t < TC_KEEPS_MAX + 2; t++)
    keep_stream("slow", A, t * 10, t * 10 + 5, 1000 + t);
  cr_assert_eq(tc_keeps_count(keeps), TC_KEEPS_MAX);
  cr_assert_str_eq(kept_by(A, "x", 12, 13), "", "noted first, gone first");
  cr_assert_str_eq(kept_by(A, "x", 20, 20), "slow");
  save_and_open_again();
  cr_assert_eq(tc_keeps_count(keeps), TC_KEEPS_MAX);
}

Test(keeps, a_rule_that_keeps_all_the_time_takes_none_of_anothers) {
  keep_stream("rare", B, 100, 200, 1);
  for (uint64_t t = 0; t < TC_KEEPS_MAX + 2; t++)
    keep_stream("flaps", A, t * 10, t * 10 + 5, 1000 + t);
  cr_assert_str_eq(kept_by(B, "x", 150, 150), "rare");
  keep_stream("rare", B, 300, 400, 2);
  cr_assert_eq(tc_keeps_count(keeps), TC_KEEPS_MAX);
  cr_assert_str_eq(kept_by(B, "x", 150, 150), "rare");
  cr_assert_str_eq(kept_by(B, "x", 350, 350), "rare");
}
