/* SPDX-License-Identifier: Apache-2.0 */
/* A table of options: how words are read, and the errors for words that do not fit. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/term/tracectl.h"

struct inner {
  const char *text;
  uint64_t time_ns;
};

struct target {
  bool flag;
  unsigned word, top;
  uint64_t count, span_ns;
  struct tk_texts texts;
  struct tk_at at;
  struct inner inner;
};

static const struct tk_option inner_rows[] = {
  TK_OPTION(0, "text", "S", tk_read_text, offsetof(struct inner, text), "a text"),
  TK_OPTION(0, "since", "T", tk_read_time, offsetof(struct inner, time_ns), "a time"),
  { 0 },
};

#define AT(member) offsetof(struct target, member)
static const struct tk_option rows[] = {
  TK_HELP("list", "an argument"),
  TK_OPTION('f', "flag", NULL, tk_read_flag, AT(flag), "a flag"),
  TK_OPTION('d', NULL, "one|two|three", tk_read_word, AT(word), "a word"),
  TK_OPTION(0, "top", "N", tk_read_number, AT(top), "rows"),
  TK_HELP(NULL, "A paragraph."),
  TK_OPTION(0, "count", "N", tk_read_count, AT(count), "a count"),
  TK_OPTION(0, "span", "SPAN", tk_read_span, AT(span_ns), "a span"),
  TK_OPTION('I', "include", "DIR", tk_read_texts, AT(texts), "several"),
  TK_OPTION(0, "at", "T", tk_read_at, AT(at), "a moment"),
  TK_GROUP(inner_rows, AT(inner)),
  { 0 },
};

static struct target t;
static char said[2000];

/* line: the words after the verb. Text that goes to stderr is stored in `said`. */
static int give(const char *line) {
  static char words[500];
  char *argv[40] = { words, NULL };
  int argc = 0, saved = dup(2);
  FILE *log = tmpfile();

  snprintf(words, sizeof words, "verb %s", line);
  for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) argv[argc++] = word;
  argv[argc] = NULL;
  t = (struct target){ 0 };
  optind = 0;
  cr_assert(dup2(fileno(log), 2) >= 0);
  int code = tk_options_read(argc, argv, rows, &t);
  fflush(stderr);
  dup2(saved, 2);
  close(saved);
  rewind(log);
  said[fread(said, 1, sizeof said - 1, log)] = '\0';
  fclose(log);
  return code;
}

static void expect_refused(const char *line, const char *words) {
  char whole[300];

  cr_expect_eq(give(line), TK_USAGE, "%s", line);
  snprintf(whole, sizeof whole, "tracectl verb: %s\nTry 'tracectl help verb'.\n", words);
  cr_expect_str_eq(said, whole);
}

Test(options, each_kind_of_value_is_stored_in_its_field) {
  cr_assert_eq(give("-f a -d two --top 0 b --count 7 --span 1m -I x --include y --at 12 --text z "
                    "--since @5 c"),
               TK_DONE, "%s", said);
  cr_assert(t.flag && t.word == 1 && t.top == 0 && t.count == 7);
  cr_assert_eq(t.span_ns, UINT64_C(60000000000));
  cr_assert_eq(t.texts.n, 2);
  cr_assert_str_eq(t.texts.text[0], "x");
  cr_assert_str_eq(t.texts.text[1], "y");
  cr_assert(t.at.is_given && !t.at.is_wall && t.at.at == 12);
  cr_assert_str_eq(t.inner.text, "z");
  cr_assert_eq(t.inner.time_ns, UINT64_C(5000000000));
  cr_assert_eq(give("--at @3"), TK_DONE);
  cr_assert(t.at.is_given && t.at.is_wall && t.at.wall_ns == UINT64_C(3000000000));
  cr_assert_str_eq(said, "");
}

Test(options, an_unambiguous_beginning_of_a_name_will_do) {
  cr_assert_eq(give("--fl --inc x"), TK_DONE, "%s", said);
  cr_assert(t.flag && t.texts.n == 1);
  expect_refused("--t x", "--t may be one of --top, --text");
}

Test(options, a_value_that_does_not_fit_is_told_with_what_is_needed) {
  expect_refused("--top x", "--top needs a number, not 'x'");
  expect_refused("--top -1", "--top needs a number, not '-1'");
  expect_refused("--top 2147483648", "--top needs a number, not '2147483648'");
  expect_refused("--count 0", "--count needs a number of 1 or more, not '0'");
  expect_refused("-d four", "-d 'four': use one, two or three");
  expect_refused("-d t", "-d 't': use one, two or three");
  expect_refused("-d on", "-d 'on': use one, two or three; did you mean one?");
  expect_refused("--span x", "--span needs a span of time (10ms, 30s, 5m, 24h), not 'x'");
  expect_refused("--span 10", "--span needs a span of time (10ms, 30s, 5m, 24h), not '10'");
  expect_refused("--since soon",
                 "--since needs a time (2026-03-01T12:00:00Z, -5m, now or @UNIX), not 'soon'");
  expect_refused("--at soon",
                 "--at needs a time (2026-03-01T12:00:00Z, -5m, now or @UNIX), not 'soon'");
  expect_refused("--top", "--top needs a value");
  expect_refused("-d", "-d needs a value");
  expect_refused("--flag=1", "--flag takes no value");
  expect_refused("--fla=1", "--fla takes no value: it is short for --flag");
}

Test(options, an_unknown_name_is_told_with_the_one_that_was_meant) {
  expect_refused("--cuont 1", "no option --cuont; did you mean --count?");
  expect_refused("--xyzzy", "no option --xyzzy");
  expect_refused("--=1", "no option --");
  expect_refused("-Z", "no option -Z");
  expect_refused("-o x", "no option -o: the output goes to standard output; write > FILE");
  expect_refused("--output x",
                 "no option --output: the output goes to standard output; write > FILE");
}

Test(options, another_name_of_other_programs_is_an_error_that_tells_ours) {
  expect_refused("--start now", "no option --start; use --since");
  expect_refused("--end=now", "no option --end");
  expect_refused("--rows 3", "no option --rows; use --top");
  expect_refused("--to 3", "no option --to; did you mean --top?"); /* this table has no --until */
}

Test(options, another_usual_name_is_the_same_option) {
  cr_assert_eq(give("--from @7 -n 3"), TK_DONE, "%s", said);
  cr_assert_eq(t.inner.time_ns, UINT64_C(7000000000));
  cr_assert_eq(t.top, 3);
  cr_assert_eq(give("--fl -fn4 --from=@8"), TK_DONE, "%s", said);
  cr_assert(t.flag && t.top == 4 && t.inner.time_ns == UINT64_C(8000000000));
  uint64_t before = tc_wall_ns();
  cr_assert_eq(give("--last 1h"), TK_DONE, "%s", said);
  uint64_t hour_ns = UINT64_C(3600000000000);
  cr_assert(t.inner.time_ns >= before - hour_ns && t.inner.time_ns <= tc_wall_ns() - hour_ns);
  expect_refused("--last x", "--last needs a span of time (10ms, 30s, 5m, 24h), not 'x'");
  expect_refused("--from x",
                 "--from needs a time (2026-03-01T12:00:00Z, -5m, now or @UNIX), not 'x'");
  expect_refused("-n x", "--top needs a number, not 'x'");
}

Test(options, an_option_that_may_be_repeated_has_its_limit) {
  char line[10 * TK_TEXTS_MAX + 20] = "";

  for (int i = 0; i < TK_TEXTS_MAX; i++) strcat(line, "-I x ");
  cr_assert_eq(give("-I x"), TK_DONE);
  strcat(line, "-I x");
  char verb[] = "verb", *argv[2 * TK_TEXTS_MAX + 4] = { verb };
  int argc = 1;
  for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) argv[argc++] = word;
  t = (struct target){ 0 };
  optind = 0;
  cr_assert_eq(tk_options_read(argc, argv, rows, &t), TK_USAGE);
  cr_assert_eq(t.texts.n, TK_TEXTS_MAX);
}
