/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that only choose columns of a table; and any statement, cut anywhere. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/names/plain.h"
#include "tools/tracectl/names/reader.h"

static void chooses(const char *sql, const char *table, const char *columns) {
  struct tk_plain plain;

  cr_assert(tk_plain_select(sql, &plain), "%s", sql);
  cr_assert_str_eq(plain.table, table);
  cr_assert_str_eq(plain.columns, columns);
}

Test(plain, columns_and_table) {
  chooses("SELECT * FROM spans", "spans", "");
  chooses("select kind,Duration_NS from spans ;; ", "spans", "kind,Duration_NS");
  chooses("SELECT \"kind\", `state`, [gen] /* FROM x */ FROM [spans] -- WHERE 1", "spans",
          "kind,state,gen");
}

Test(plain, all_others_need_sql) {
  static const char *const others[] = { "",
                                        "SELECT",
                                        "SELECT *",
                                        "SELECT FROM spans",
                                        "SELECT kind FROM",
                                        "SELECT kind, FROM spans",
                                        "SELECT 'kind' FROM spans",
                                        "SELECT \"kind,state\" FROM spans",
                                        "SELECT kind k FROM spans",
                                        "SELECT DISTINCT kind FROM spans",
                                        "SELECT count(*) FROM spans",
                                        "SELECT kind FROM spans, events",
                                        "SELECT kind FROM spans WHERE 1",
                                        "SELECT kind FROM spans LIMIT 1",
                                        "SELECT s.kind FROM spans s",
                                        "EXPLAIN SELECT kind FROM spans",
                                        "SELECT kind FROM spans; SELECT 1" };
  struct tk_plain plain;
  char sql[2000] = "SELECT a";

  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    cr_assert_not(tk_plain_select(others[i], &plain), "%s", others[i]);
  for (int i = 0; i < 400; i++) strcat(sql, ",a");
  cr_assert_not(
      tk_plain_select(strcat(sql, " FROM spans"), &plain)); /* more than there is room for */
}

Test(plain, a_statement_that_is_cut_ends) {
  static const char whole[] =
      "SELECT 'it''s', \"a\", `b`, [c] /* x */ -- y\n<>!= FROM \xc3\xa4 WHERE k IN ('";

  for (size_t n = 0; n < sizeof whole; n++) {
    char *cut = strndup(whole, n); /* of its own length, for AddressSanitizer */
    struct tk_reader r = { .at = cut };
    struct tk_plain plain;
    unsigned tokens = 0;
    do tk_reader_next(&r);
    while (r.kind != TK_TOKEN_END && ++tokens < 100);
    cr_assert(r.kind == TK_TOKEN_END && r.at == cut + n);
    cr_assert_not(tk_plain_select(cut, &plain));
    free(cut);
  }
}
