/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/tracectl/report/condition.h"
#include "tools/tracectl/term/format_units.h"

static Tracecollect__V1__Distribution blocked = TRACECOLLECT__V1__DISTRIBUTION__INIT;
static Tracecollect__V1__SyscallReport syscall = TRACECOLLECT__V1__SYSCALL_REPORT__INIT;
static Tracecollect__V1__StwReport stw = TRACECOLLECT__V1__STW_REPORT__INIT;
static Tracecollect__V1__StreamReport report = TRACECOLLECT__V1__STREAM_REPORT__INIT;

static bool met(const char *text) {
  struct tk_condition condition;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tk_condition_parse(text, &diag, &condition), TB_OK, "%s: %s", text, diag.text);
  return tk_condition_met(&condition, &report);
}

static void refused(const char *text, const char *why) {
  struct tk_condition condition;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tk_condition_parse(text, &diag, &condition), TB_BROKEN, "%s", text);
  cr_assert_not_null(strstr(diag.text, why), "%s: %s", text, diag.text);
}

Test(condition, compares_times_counts_shares_and_lists) {
  blocked.count = 12;
  blocked.p99_ns = 50000000;
  syscall.blocked = &blocked;
  syscall.n_blocked_now = 2;
  syscall.blocked_now_total = 3;
  report.syscall = &syscall;
  cr_assert(met("syscall.blocked.p99 >= 50ms"));
  cr_assert(met("syscall.blocked.p99_ns<=0.05s"));
  cr_assert_not(met("syscall.blocked.p99 > 50000us"));
  cr_assert(met(" syscall.blocked.count == 12"));
  cr_assert(met("syscall.blocked.count!=11"));
  cr_assert(met("syscall.blocked_now > 1"));
  cr_assert(met("syscall.blocked_now == 3"), "rows that are not listed count, too");
  cr_assert(met("syscall.blocked_now_total < 4"));
  cr_assert_not(met("stw.share_of_wall < 1%"), "a report of another kind meets nothing");
  report.stw = &stw;
  stw.share_of_wall = 0.02;
  cr_assert(met("stw.share_of_wall > 1.5%"));
  cr_assert_not(met("stw.share_of_wall > 0.02"));
}

Test(condition, says_what_is_wrong_with_it) {
  refused("", "no figure");
  refused("syscall > 3", "no figure");
  refused("syscall.blocked > 3", "no figure");
  refused("syscall.blocked.p98 > 3ms", "no figure");
  refused("syscall.calls.count.x > 3", "no figure");
  refused("kind > 3", "no figure");
  refused("syscall.blocked.p99 3ms", "no comparison");
  refused("syscall.blocked.p99 > ", "no value");
  refused("syscall.blocked.p99 > 3", "unit");
  refused("syscall.blocked.count > 3 apples", "too much");
}

Test(human, three_digits_and_a_unit) {
  static const struct {
    uint64_t ns;
    const char *text;
  } rows[] = { { 0, "-" },
               { 1, "1 ns" },
               { 999, "999 ns" },
               { 1000, "1.00 us" },
               { 9994, "9.99 us" },
               { 9996, "10.0 us" },
               { 999400, "999 us" },
               { 999600, "1.00 ms" },
               { 1234567, "1.23 ms" },
               { 45600000000, "45.6 s" },
               { 90000000000, "1.50 m" },
               { 7200000000000, "2.00 h" } };
  char text[TK_FORMAT_BYTES];

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    cr_assert_str_eq(tk_format_ns(rows[i].ns, text), rows[i].text);
  cr_assert_str_eq(tk_format_count(0, text), "0");
  cr_assert_str_eq(tk_format_count(999, text), "999");
  cr_assert_str_eq(tk_format_count(1234567, text), "1,234,567");
  cr_assert_str_eq(tk_format_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
}
