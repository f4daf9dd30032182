/* SPDX-License-Identifier: Apache-2.0 */
/* `tracectl diff` of traces whose tasks have known lengths: which changes are significant, and what it says of the others. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/order_text.h"
#include "tools/tracectl/diff/compare.h"
#include "tools/tracectl/term/tracectl.h"

enum { GENERATIONS = 4, TYPES = 40, TASKS = 3 };

static char folder[64], said[1 << 16];

static void open_folder(void) {
  tb_mem_init(&tk_mem, tb_mem_libc, NULL, SIZE_MAX);
  strcpy(folder, "/tmp/tk_diff_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  cr_assert_eq(chdir(folder), 0);
}

static void close_folder(void) {
  char command[96];

  cr_assert_eq(chdir("/"), 0);
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(diff, .init = open_folder, .fini = close_folder);

/* Lengths of types are spread over an octave, so that buckets begin anywhere between them. */
static uint64_t length_of(unsigned type, unsigned permille) {
  return (uint64_t)(100 * exp2((double)type / TYPES)) * permille;
}

/* Writes a trace in which tasks of the types s1 to s40 take so many permille of their length; one of three takes half. */
static void write_trace(const char *name, unsigned permille) {
  struct tb_mem mem;
  struct tb_buf text, bytes;
  uint64_t now = 0, task = 0;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&text, &mem);
  tb_buf_init(&bytes, &mem);
  tb_buf_text(&text, "Trace Go1.22\n");
  for (unsigned gen = 1; gen <= GENERATIONS; gen++) {
    tb_buf_printf(&text,
                  "EventBatch gen=%u m=0 time=%" PRIu64 "\nProcStatus dt=1 p=0 pstatus=1\n"
                  "GoStatus dt=1 g=1 m=0 gstatus=2\n",
                  gen, now);
    now += 2;
    for (unsigned i = 0; i < TYPES * TASKS; i++) {
      uint64_t ns = length_of(1 + i / TASKS, permille) / (i % TASKS == 0 ? 2 : 1);
      task++;
      tb_buf_printf(&text,
                    "UserTaskBegin dt=1 task=%" PRIu64 " parent_task=0 name_string=%u stack=0\n"
                    "UserTaskEnd dt=%" PRIu64 " task=%" PRIu64 " stack=0\n",
                    task, 1 + i / TASKS, ns, task);
      now += 1 + ns;
    }
  }
  tb_buf_byte(&text, '\0');
  tt_trace_bytes((const char *)text.data, &mem, &bytes);
  FILE *f = fopen(name, "w");
  cr_assert_not_null(f);
  cr_assert_eq(fwrite(bytes.data, 1, bytes.len, f), bytes.len);
  cr_assert_eq(fclose(f), 0);
  tb_buf_fini(&bytes);
  tb_buf_fini(&text);
}

struct both {
  struct tk_samples a, b;
  struct tk_comparison comparison;
};

static void read_both(struct both *both, unsigned permille) {
  char error[TK_QUERY_ERROR] = "";
  struct tk_place a = { .path = "a", .name = "a", .verb = "diff" },
                  b = { .path = "b", .name = "b", .verb = "diff" };

  write_trace("a", 1000);
  write_trace("b", permille);
  tk_samples_init(&both->a);
  tk_samples_init(&both->b);
  cr_assert(tk_samples_read(&both->a, &a, error), "%s", error);
  cr_assert(tk_samples_read(&both->b, &b, error), "%s", error);
  cr_assert_eq(both->a.samples, GENERATIONS);
  cr_assert(tk_comparison_new(&both->comparison, &both->a, &both->b));
}

static void forget_both(struct both *both) {
  tk_comparison_fini(&both->comparison);
  tk_samples_fini(&both->a);
  tk_samples_fini(&both->b);
}

static struct tk_change change_of(struct both *both, unsigned type, enum tk_diff_field field) {
  char key[24];

  snprintf(key, sizeof key, "s%u", type);
  const struct tk_diff_row *a = tk_samples_find(&both->a, TK_DIFF_TASK, key);
  const struct tk_diff_row *b = tk_samples_find(&both->b, TK_DIFF_TASK, key);
  cr_assert(a != NULL && b != NULL, "%s", key);
  return tk_compare(&both->comparison, a, b, field);
}

static void expect_within_error(double got, uint64_t exact) {
  double error = tk_diff_field_error(TK_DIFF_P99);

  cr_assert(fabs(got - (double)exact) <= error * (double)exact + 0.5, "%g for %" PRIu64, got,
            exact);
}

Test(diff, a_shift_of_1_percent_is_seen_in_the_mean_but_may_be_the_error_of_p99) {
  struct both both;
  unsigned neighbours = 0;

  cr_assert_float_eq(tk_diff_field_error(TK_DIFF_P99), 0.0108, 0.0001);
  cr_assert_eq(tk_diff_field_error(TK_DIFF_MEAN), 0);
  read_both(&both, 1010);
  for (unsigned type = 1; type <= TYPES; type++) {
    struct tk_change mean = change_of(&both, type, TK_DIFF_MEAN),
                     p99 = change_of(&both, type, TK_DIFF_P99);
    cr_assert(tk_change_is_significant(&mean));
    cr_assert_null(tk_change_explanation(&mean));
    cr_assert_float_eq(mean.low, 0.01, 1e-4);
    cr_assert_float_eq(mean.high, 0.01, 1e-4);
    expect_within_error(p99.a, length_of(type, 1000));
    expect_within_error(p99.b, length_of(type, 1010));
    cr_assert_not(tk_change_is_significant(&p99), "s%u: %g, from %g", type, p99.share, p99.low);
    cr_assert_str_eq(tk_change_explanation(&p99), "error");
    cr_assert(p99.low <= 0.01 && p99.high >= 0.01, "s%u: %g..%g", type, p99.low, p99.high);
    neighbours += p99.share > 0;
  }
  cr_assert(neighbours > 0 && neighbours < TYPES, "%u", neighbours); /* both kinds were tried */
  forget_both(&both);
}

Test(diff, what_is_more_than_the_errors_of_both_sides_is_significant_in_p99) {
  struct both both;

  for (unsigned permille = 950; permille <= 1050; permille += 100) {
    read_both(&both, permille);
    for (unsigned type = 1; type <= TYPES; type++) {
      struct tk_change p99 = change_of(&both, type, TK_DIFF_P99);
      double share = (double)permille / 1000 - 1;
      cr_assert(tk_change_is_significant(&p99), "s%u: %g (%g..%g)", type, p99.share, p99.low,
                p99.high);
      cr_assert_null(tk_change_explanation(&p99));
      cr_assert(p99.low <= share && p99.high >= share, "s%u: %g..%g", type, p99.low, p99.high);
    }
    forget_both(&both);
  }
}

static int run(const char *words) {
  char command[512];

  snprintf(command, sizeof command, "%s/bin/tracectl diff --no-progress %s >said 2>&1",
           getenv("TC_BINARY_DIR"), words);
  int status = system(command);
  FILE *f = fopen("said", "r");
  said[fread(said, 1, sizeof said - 1, f)] = '\0';
  fclose(f);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_said(const char *words) {
  cr_assert_not_null(strstr(said, words), "%s is not in: %s", words, said);
}

static unsigned a_type_with_neighbours(void) {
  struct both both;
  unsigned type = 1;

  read_both(&both, 1010);
  while (change_of(&both, type, TK_DIFF_P99).share <= 0) type++;
  forget_both(&both);
  return type;
}

Test(diff, a_condition_that_the_error_may_explain_is_not_met_and_says_so) {
  unsigned type = a_type_with_neighbours();
  char words[256], line[256];

  snprintf(words, sizeof words,
           "--top 0 a b --fail-on 'tasks[s%u].p99 > +1%%' --fail-on 'tasks[s%u].p50 > +1%%'", type,
           type);
  cr_assert_eq(run(words), 0, "%s", said);
  snprintf(line, sizeof line,
           "condition not met: tasks[s%u].p99 > +1%%: +2.2 %% (+0.0..+4.4) may be error; each side "
           "is at most 1.1 %% off\n",
           type);
  expect_said(line);
  expect_said(".p50 > +1%: +2.2 % (+0.0..+4.4) may be error");
  expect_said("+1.0 % (+1..+1) *");
  expect_said("+2.2 % (+0..+4) ~\n");
  expect_said("P99 is at most 1.1 % off on each side.");
  snprintf(words, sizeof words, "a b --fail-on 'tasks[s%u].mean > +0.9%%'", type);
  cr_assert_eq(run(words), 3, "%s", said);
  snprintf(line, sizeof line, "condition met: tasks[s%u].mean > +0.9%%: +1.0 %% (+1.0..+1.0)\n",
           type);
  expect_said(line);
  write_trace("b", 1050);
  snprintf(words, sizeof words, "a b --fail-on 'tasks[s%u].p99 > +1%%'", type);
  cr_assert_eq(run(words), 3, "%s", said);
  expect_said("condition met: ");
  expect_said("; each side is at most 1.1 % off\n");
}

Test(diff, json_says_the_error_and_why_a_change_is_not_significant) {
  unsigned type = a_type_with_neighbours();
  char key[64];

  cr_assert_eq(run("--json --top 0 a b"), 0, "%s", said);
  snprintf(key, sizeof key, "{\"metric\":\"tasks\",\"key\":\"s%u\",", type);
  char *row = strstr(said, key);
  cr_assert_not_null(row, "%s", said);
  row[strcspn(row, "\n")] = '\0';
  cr_assert_not_null(strstr(row, "\"significant\":true,\"may_be\":null},\"p50\":{"), "%s",
                     row); /* of the mean */
  char *p99 = strstr(row, "\"p99\":{");
  cr_assert_not_null(p99, "%s", row);
  cr_assert_not_null(strstr(p99, "\"error_share\":0.0109"), "%s", p99);
  cr_assert_not_null(strstr(p99, "\"low_share\":0.0,"), "%s", p99);
  cr_assert_not_null(strstr(p99, "\"significant\":false,\"may_be\":\"error\"}}"), "%s", p99);
}
