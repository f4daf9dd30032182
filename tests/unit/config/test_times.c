/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/times.h"
#include "tools/tracectl/term/table.h"

#define S UINT64_C(1000000000)
static const uint64_t now = UINT64_C(1767225600) * S; /* 2026-01-01T00:00:00Z */

static void expect(const char *text, uint64_t wanted) {
  struct tb_diag diag;
  uint64_t got = 0;

  tb_diag_clear(&diag);
  cr_expect_eq(tc_time_parse(text, now, &diag, &got), TB_OK, "%s: %s", text, diag.text);
  cr_expect_eq(got, wanted, "%s: %" PRIu64, text, got);
}

Test(times, every_way_of_writing_a_moment) {
  expect("now", now);
  expect("-5m", now - 300 * S);
  expect("-1h30m", now - 5400 * S);
  expect("@1767225600", now);
  expect("@1767225600.25", now + S / 4);
  expect("@0", 1);
  expect("2026-01-01T00:00:00Z", now);
  expect("2026-01-01t00:00:00z", now);
  expect("2026-01-01 00:00:00.5Z", now + S / 2);
  expect("2026-01-01T00:00:00.1234567899Z", now + 123456789);
  expect("2026-01-01T02:30:00+02:30", now);
  expect("2025-12-31T19:00:00-05:00", now);
  expect("2024-02-29T00:00:00Z", UINT64_C(1709164800) * S);
  expect("2016-12-31T23:59:60Z",
         UINT64_C(1483228800) * S); /* a leap second counts as the first second of the next day */
}

Test(times, without_a_zone_it_is_local) {
  setenv("TZ", "UTC-3", 1); /* three hours east of Greenwich */
  tzset();
  expect("2026-01-01T03:00:00", now);
  expect("2026-01-01", now - 3 * 3600 * S);
}

Test(times, what_is_no_moment_is_refused) {
  for (const char *const *bad = (const char *const[]){ "",
                                                       "yesterday",
                                                       "5m",
                                                       "-5x",
                                                       "-5",
                                                       "@",
                                                       "@x",
                                                       "@-1",
                                                       "@99999999999999999999",
                                                       "2026-13-01T00:00:00Z",
                                                       "2026-02-30T00:00:00Z",
                                                       "2026-04-31",
                                                       "2026-01-01T24:00:00Z",
                                                       "2026-01-01T00:60:00Z",
                                                       "2026-01-01T00:00:61Z",
                                                       "2026-01-01T00:00:00+2:00",
                                                       "2026-01-01T00:00:00.Z",
                                                       "2026-01-01T00:00:00Zx",
                                                       "2026-01-01T",
                                                       "1969-12-31T23:59:59Z",
                                                       NULL };
       *bad != NULL; bad++) {
    struct tb_diag diag;
    uint64_t got;
    tb_diag_clear(&diag);
    cr_expect_eq(tc_time_parse(*bad, now, &diag, &got), TB_BROKEN, "\"%s\"", *bad);
    cr_expect_not_null(strstr(diag.text, "is not a time"), "%s", diag.text);
  }
}

Test(times, spans) {
  uint64_t got;

  cr_assert_eq(tc_span_parse("5s", NULL, &got), TB_OK);
  cr_assert_eq(got, 5 * S);
  cr_assert_eq(tc_span_parse("7d", NULL, &got), TB_OK);
  cr_assert_eq(got, 7 * 86400 * S);
  cr_assert_eq(tc_span_parse("5", NULL, &got), TB_BROKEN, "a unit is required");
  cr_assert_eq(tc_span_parse("1.5", NULL, &got), TB_BROKEN);
  cr_assert_eq(tc_span_parse("", NULL, &got), TB_BROKEN);
  cr_assert_eq(tc_span_parse("99999999999999999999999999999999999999", NULL, &got), TB_BROKEN);
  cr_assert_eq(tc_span_parse("0", NULL, &got), TB_BROKEN);
  cr_assert_eq(tc_span_parse("-5s", NULL, &got), TB_BROKEN);
}

Test(times, moments_are_printed_as_rfc3339) {
  char text[TC_TIME_BYTES];

  tc_time_format(now + 42000000, text);
  cr_assert_str_eq(text, "2026-01-01T00:00:00.042Z");
  tc_time_format(0, text);
  cr_assert_str_eq(text, "-");
  tc_time_format(UINT64_MAX, text); /* far in the future, but harmless */
}

Test(times, sizes_for_people) {
  char text[TK_SIZE_BYTES];

  tk_size_format(0, text);
  cr_assert_str_eq(text, "0 B");
  tk_size_format(1023, text);
  cr_assert_str_eq(text, "1023 B");
  tk_size_format(1536, text);
  cr_assert_str_eq(text, "1.5 KiB");
  tk_size_format((1 << 20) - 1, text);
  cr_assert_str_eq(text, "1.0 MiB");
  tk_size_format(UINT64_MAX, text);
  cr_assert_str_eq(text, "16.0 EiB");
}

Test(times, tables_line_up_by_characters) {
  struct tk_table table;
  char *got;
  size_t n;
  FILE *out = open_memstream(&got, &n);

  tk_table_init(&table, "NAME,>N,LAST");
  tk_table_add(&table, "%s", "größer");
  tk_table_add(&table, "%d", 7);
  tk_table_add(&table, "%s", "a|b");
  tk_table_print(&table, out, false);
  tk_table_print(&table, out, true);
  fclose(out);
  cr_assert_str_eq(got, "NAME    N  LAST\n"
                        "größer  7  a|b\n"
                        "| NAME | N | LAST |\n"
                        "|---|---:|---|\n"
                        "| größer | 7 | a\\|b |\n");
  free(got);
  tk_table_fini(&table);
}

Test(times, a_cell_does_not_steer_the_terminal) {
  struct tk_table table;

  tk_table_init(&table, "NAME");
  tk_table_add(&table, "%s",
               "\x1b[2J\x7f\xc2\x9b"
               "31mgr\xc3\xb6\xc3\x9f"
               "er\n");
  cr_assert_str_eq(table.cell[1], "?[2J??31mgrößer?");
  tk_table_fini(&table);
}
