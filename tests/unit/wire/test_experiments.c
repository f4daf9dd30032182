/* SPDX-License-Identifier: Apache-2.0 */
/* F2, F6 to F9, F11: experiments, as text. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "wire/experiments.h"

static struct tw_experiments x;
static struct tb_diag diag;

static tb_rc read_text(const char *text, bool numbered) {
  tw_experiments_init(&x);
  tb_diag_clear(&diag);
  return tw_experiments_read(&x, text, strlen(text), numbered, &diag);
}

static void refused(const char *text, bool numbered, const char *reason) {
  cr_expect_eq(read_text(text, numbered), TB_BROKEN, "%s", text);
  cr_expect_neq(strstr(diag.text, reason), NULL, "%s: %s", text, diag.text);
}

Test(experiments, arguments_say_their_type_by_their_name) {
  cr_assert_eq(read_text("# what a cache does\n"
                         "experiment Cache\n"
                         "event Hit key_string bytes_value g task\r\n"
                         "event Miss ctx=M stack m_a_b p_pstatus gstatus # seldom\n",
                         false),
               TB_OK, "%s", diag.text);
  static const enum tw_arg_type hit[] = { TW_ARG_STRING, TW_ARG_VALUE, TW_ARG_G, TW_ARG_TASK },
                                miss[] = { TW_ARG_STACK, TW_ARG_VALUE, TW_ARG_PSTATUS,
                                           TW_ARG_GSTATUS };
  cr_assert_eq(x.events, 2);
  cr_assert_str_eq(x.event[0].spec.name, "Hit");
  cr_assert_eq(x.event[0].context, TW_CTX_MPG);
  cr_assert_eq(x.event[1].context, TW_CTX_M);
  for (int i = 0; i < 4; i++) {
    cr_assert_eq(x.event[0].spec.args[i].type, hit[i]);
    cr_assert_eq(x.event[1].spec.args[i].type, miss[i]);
  }
  cr_assert_str_eq(x.event[1].spec.args[1].label, "m_a_b");
}

Test(experiments, a_sequence_belongs_to_the_argument_of_its_name) {
  cr_assert_eq(read_text("experiment Queue\n"
                         "event Push queue_value queue_seq\n"
                         "event Pop queue queue_seq\n"
                         "event Reset all_seq\n"
                         "event Odd queue_len queue_seq\n",
                         false),
               TB_OK, "%s", diag.text);
  cr_assert_eq(x.event[0].seq_arg, 1);
  cr_assert_eq(x.event[0].of_arg, 0);
  cr_assert_eq(x.event[1].of_arg, 0);
  cr_assert_eq(x.event[0].sequence, x.event[1].sequence);
  cr_assert_eq(x.event[2].seq_arg, 0);
  cr_assert_eq(x.event[2].of_arg, -1);
  cr_assert_neq(x.event[2].sequence, x.event[0].sequence);
  cr_assert_eq(x.event[3].of_arg, -1, "queue_len is no queue");
}

Test(experiments, what_is_wrong_is_named_with_its_line) {
  refused("event A\n", false, "line 1: an event before");
  refused("experiment A\nevnt B\n", false, "line 2: a line begins with");
  refused("experiment 1A\n", false, "line 1: an experiment's name");
  refused("experiment A b\n", false, "more words");
  refused("experiment AllocFree\n", false, "Go's own");
  refused("experiment A\nexperiment A\n", false, "already declared");
  refused("experiment A\nevent B x\nevent B y\n", false, "line 3: event B was already declared");
  refused("experiment A\nevent B a b c d e\n", false, "more than 4 arguments");
  refused("experiment A\nevent B a a\n", false, "two arguments a");
  refused("experiment A\nevent B a_seq b_seq\n", false, "two sequence numbers");
  refused("experiment A\nevent B ctx=G\n", false, "ctx is MPG, MP, M or any");
  refused("experiment A\nevent B a-b\n", false, "argument 1");
  refused("experiment A\nevent B dt\n", false, "its dt");
  refused("experiment A\nevent B id=137\n", false, "an id= is given");
  refused("experiment A\n", true, "no id=");
  refused("experiment A id=1\n", true, "id is not 2 to 254");
  refused("experiment A id=255\n", true, "id is not 2 to 254");
  refused("experiment A id=2\nevent B id=136\n", true, "id is not 137 to 255");
  refused("experiment A id=2\nevent B id=1000\n", true, "id is not 137 to 255");
  refused("experiment A id=2\nexperiment B id=2\n", true,
          "already declared with another name or number");
}

Test(experiments, what_is_told_again_must_be_the_same) {
  const char *text = "experiment A id=2\nevent B id=137 ctx=any a b_seq\n";

  cr_assert_eq(read_text(text, true), TB_OK);
  size_t bytes = x.text_bytes;
  cr_assert_eq(tw_experiments_read(&x, text, strlen(text), true, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(x.events, 1);
  cr_assert_eq(x.text_bytes, bytes);
  cr_assert_eq(x.sequences, 1);
  const char *other = "experiment A id=2\nevent B id=137 ctx=M a b_seq\n";
  cr_assert_eq(tw_experiments_read(&x, other, strlen(other), true, &diag), TB_BROKEN);
  cr_assert_eq(x.event[0].context, TW_CTX_ANY);
}

Test(experiments, are_written_as_they_are_read) {
  const char *text = "experiment A id=7\nevent B id=200 ctx=MP a_string b_seq\n";
  char out[2 * TW_EXPERIMENT_LINE_MAX];

  cr_assert_eq(read_text(text, true), TB_OK);
  cr_assert_eq(tw_own_event(&x, 200), &x.event[0]);
  cr_assert_null(tw_own_event(&x, 201));
  cr_assert_null(tw_own_event(&x, 128));
  cr_assert_null(tw_own_event(NULL, 200));
  size_t n = tw_experiment_write(&x, 0, out);
  n += tw_own_event_write(&x.event[0], out + n);
  cr_assert_eq(n, strlen(text));
  cr_assert_str_eq(out, text);
}

Test(experiments, all_numbers_can_be_taken_and_no_more) {
  static char text[16 << 10];
  int n = snprintf(text, sizeof text, "experiment A id=2\n");

  for (int i = TW_OWN_EVENT_FIRST; i < 256; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "event E%d id=%d\n", i, i);
  cr_assert_eq(read_text(text, true), TB_OK, "%s", diag.text);
  cr_assert_eq(x.events, TW_OWN_EVENTS_MAX);
  snprintf(text + n, sizeof text - (size_t)n, "event More id=255\n");
  refused(text, true, "already declared");
}

Test(experiments, longest_lines_fit) {
  static char text[1024];
  char out[TW_EXPERIMENT_LINE_MAX];
  int n = snprintf(text, sizeof text, "experiment A id=254\nevent E%047d id=255 ctx=MPG", 0);

  for (int i = 0; i < 4; i++) n += snprintf(text + n, sizeof text - (size_t)n, " a%031d", i);
  cr_assert_eq(read_text(text, true), TB_OK, "%s", diag.text);
  cr_assert_lt(tw_own_event_write(&x.event[0], out), sizeof out);
  cr_assert_eq(strlen(out), strlen(strstr(text, "event")) + 1);
}
