// SPDX-License-Identifier: Apache-2.0
/* Texts in a C program's words, and that none of all reports' texts is left in Go's. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/analysis/analysis.h"
#include "online/words/words.h"

static const char *in_c(const char *text) {
  static char words[1024];

  cr_assert_lt(to_words_write(TO_PROGRAM_C, text, words, sizeof words), sizeof words);
  return words;
}

Test(words, a_go_program_keeps_its_words) {
  char words[64];

  cr_assert_eq(to_words_write(TO_PROGRAM_GO, "Goroutines wait for Ps.", words, sizeof words), 23);
  cr_assert_str_eq(words, "Goroutines wait for Ps.");
  (void)to_words_column(TO_PROGRAM_GO, "thread", words, sizeof words);
  cr_assert_str_eq(words, "thread");
}

Test(words, the_longest_row_that_begins_at_a_word_is_replaced) {
  cr_assert_str_eq(in_c("2 goroutines, 1 goroutine"), "2 threads, 1 thread");
  cr_assert_str_eq(in_c("Where goroutines wait."), "Where threads wait.");
  cr_assert_str_eq(in_c("They waited for a P while the world was stopped."),
                   "They waited to run while the program was paused.");
  cr_assert_str_eq(in_c("Goroutines that began in a call (cgo callbacks)."),
                   "Threads that began in a call.");
}

Test(words, names_of_the_program_are_not_replaced) {
  cr_assert_str_eq(in_c("goroutine 5 my_goroutine at goroutines_of:7"),
                   "thread 5 my_goroutine at goroutines_of:7");
  cr_assert_str_eq(in_c("xgoroutine goroutine2"), "xgoroutine goroutine2");
}

Test(words, a_text_is_cut_as_by_snprintf) {
  char words[8];

  cr_assert_eq(to_words_write(TO_PROGRAM_C, "goroutines", words, sizeof words), 7);
  cr_assert_str_eq(words, "threads");
  cr_assert_eq(to_words_write(TO_PROGRAM_C, "goroutines wait", words, sizeof words), 12);
  cr_assert_str_eq(words, "threads");
  cr_assert_eq(to_words_write(TO_PROGRAM_C, "goroutine", NULL, 0), 6);
}

Test(words, a_column_is_compared_by_its_whole_name) {
  char words[32];

  (void)to_words_column(TO_PROGRAM_C, "thread", words, sizeof words);
  cr_assert_str_eq(words, "tid");
  (void)to_words_column(TO_PROGRAM_C, "goroutine", words, sizeof words);
  cr_assert_str_eq(words, "thread");
  (void)to_words_column(TO_PROGRAM_C, "last_goroutine", words, sizeof words);
  cr_assert_str_eq(words, "last_thread");
  cr_assert_str_eq(in_c("which thread"), "which thread");
}

Test(words, rows_are_unique_and_none_replaces_what_another_writes) {
  struct to_words_row a, b;

  for (size_t i = 0; to_words_row(i, &a); i++) {
    for (size_t j = 0; j < i && to_words_row(j, &b); j++)
      cr_assert(a.is_column != b.is_column || strcmp(a.go, b.go) != 0, "%s", a.go);
    if (!a.is_column) cr_assert_str_eq(in_c(a.c), a.c, "replaced twice");
  }
}

/* ---- texts of reports */

static bool has_word(const char *text, const char *word) {
  size_t n = strlen(word);

  for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
    bool begins = at == text || strchr(" (,\"", at[-1]) != NULL;
    if (begins && strchr(" ,.;:)(\"", at[n]) != NULL) return true;
  }
  return false;
}

static void check(const char *text, const char *where) {
  static const char *const gos[] = {
    "goroutine", "goroutines", "Goroutine", "Goroutines",    "P", "Ps", "cgo", "GOMAXPROCS", "Go",
    "runtime",   "world",      "channel",   "stop-the-world"
  };

  if (text == NULL) return;
  for (size_t i = 0; i < sizeof gos / sizeof *gos; i++)
    cr_assert_not(has_word(in_c(text), gos[i]), "%s of %s: \"%s\" becomes \"%s\"", gos[i], where,
                  text, in_c(text));
}

static void check_fields(const struct to_field *field, unsigned n, const char *where) {
  for (unsigned i = 0; i < n; i++) check(field[i].about, where);
}

Test(words, no_text_of_a_report_is_left_in_gos_words) {
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    const char *name = to_analysis_name((enum to_analysis_kind)k);
    const struct to_schema *schema = to_analysis_schema((enum to_analysis_kind)k);
    check(to_analysis_about((enum to_analysis_kind)k), name);
    check_fields(schema->option, schema->options, name);
    check_fields(schema->figure, schema->figures, name);
    for (unsigned t = 0; t < schema->tables; t++) {
      check(schema->table[t].about, name);
      check(schema->table[t].order_about, name);
      check_fields(schema->table[t].column, schema->table[t].columns, name);
    }
  }
}
