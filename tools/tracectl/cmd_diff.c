/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl diff A B: finds what got slower, with confidence intervals. A and B are files, or
 * selections of a collector's streams: service=shop,since=-2h,until=-1h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tracectl/args/idle.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/diff/condition.h"
#include "tools/tracectl/diff/print.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/url/url.h"

enum { CONDITIONS_MAX = 16, NAME_BYTES = 40 };

struct diff_options {
  struct tk_client_args client;
  bool json, no_progress;
  unsigned rows;
  const char *idle; /* NULL: only the built-in rules */
  struct tk_diff_condition condition[CONDITIONS_MAX];
  size_t conditions;
};

static tb_rc read_condition(const struct tk_option *option, const char *value, void *field,
                            struct tb_diag *diag) {
  struct diff_options *o = field;

  if (o->conditions == CONDITIONS_MAX)
    return tb_fail(diag, TB_BROKEN, "--fail-on can be given at most %d times", CONDITIONS_MAX);
  if (tk_diff_condition_parse(value, diag, &o->condition[o->conditions++]) == TB_OK) return TB_OK;
  return tk_option_fails(option, diag);
}

#define AT(member) offsetof(struct diff_options, member)
const struct tk_option tk_diff_options[] = {
  TK_OPTION(0, "fail-on", "EXPR", read_condition, 0,
            "exit 3 if the condition is met: 'sched.p99 > +20%', 'tasks[checkout].mean > +10%', "
            "'running.time < -50%'"),
  TK_OPTION(0, "top", "N", tk_read_number, AT(rows),
            "rows of each metric, those with most time (default 10, 0: all)"),
  TK_OPTION(0, "idle", "LIST", tk_read_idle, AT(idle), TK_IDLE_ABOUT),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one object a row"),
  TK_OPTION(0, "no-progress", NULL, tk_read_flag, AT(no_progress), "no progress bar"),
  TK_GROUP(tk_url_options, 0),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

/* Reads one "name=value", an option that selects streams. Modifies word, from which the value is
 * lent. */
static int read_word(struct tk_inputs *in, char *word) {
  static char verb[] = "diff";
  char option[NAME_BYTES], *value = strchr(word, '='), *argv[] = { verb, option, value, NULL };

  if (value == NULL || value == word) return tk_usage("diff", "'%s' is not NAME=VALUE", word);
  *argv[2]++ = '\0';
  snprintf(option, sizeof option, "--%s", word);
  optind = 0; /* restart getopt */
  return tk_options_read(3, argv, tk_selector_options, &in->selector);
}

/* Modifies text. */
static int read_words(struct tk_inputs *in, char *text) {
  int code = TK_DONE;
  char *rest = NULL;

  in->is_remote = true;
  for (char *word = strtok_r(text, ",", &rest); code == TK_DONE && word != NULL;
       word = strtok_r(NULL, ",", &rest))
    code = read_word(in, word);
  return code;
}

static int read_places(const struct tk_inputs *in, const char *side, const char *idle,
                       struct tk_samples *out) {
  char error[TK_QUERY_ERROR] = "";

  for (size_t i = 0; i < in->n; i++) {
    in->place[i].idle = idle;
    if (!tk_samples_read(out, &in->place[i], error))
      return error[0] == 0 ? TK_FAILED : tk_fail("diff", "%s", error);
  }
  return out->generations > 0 ? TK_DONE : tk_fail("diff", "%s: no span in it has ended", side);
}

static int read_side(const struct diff_options *o, char *side, struct tk_samples *out) {
  bool is_file = strchr(side, '=') == NULL || tk_url_is(side) || access(side, F_OK) == 0;
  struct tk_inputs in = { .verb = "diff", .no_progress = o->no_progress };
  char *words = strdup(side);

  int code = words == NULL ? tk_fail("diff", "out of memory") : TK_DONE;
  if (!is_file || tk_url_is(side)) in.client = o->client;
  if (code == TK_DONE && !is_file) code = read_words(&in, words);
  if (code == TK_DONE) code = tk_inputs_open(&in, is_file ? &side : NULL, is_file ? 1 : 0);
  if (code == TK_DONE) code = read_places(&in, side, o->idle, out);
  tk_inputs_close(&in);
  free(words);
  return code;
}

/* Says what became of a condition whose limit is exceeded. */
static void note_exceeded(const struct tk_diff_condition *condition, const struct tk_change *change,
                          bool is_met) {
  double error = 100 * tk_diff_field_error(condition->field);
  char end[80] = "";

  if (error > 0) snprintf(end, sizeof end, "; each side is at most %.1f %% off", error);
  tk_note("diff", "condition %s: %s: %+.1f %% (%+.1f..%+.1f)%s%s%s", is_met ? "met" : "not met",
          condition->text, 100 * change->share, 100 * change->low, 100 * change->high,
          is_met ? "" : " may be ", is_met ? "" : tk_change_explanation(change), end);
}

static int judge(const struct diff_options *o, struct tk_comparison *c) {
  int code = TK_DONE;

  for (size_t i = 0; i < o->conditions; i++) {
    const struct tk_diff_condition *condition = &o->condition[i];
    const struct tk_diff_row *a = tk_samples_find(c->a, condition->metric, condition->key);
    const struct tk_diff_row *b = tk_samples_find(c->b, condition->metric, condition->key);
    struct tk_change change = tk_compare(c, a, b, condition->field);
    bool is_met = tk_diff_condition_is_met(condition, &change);
    if (a == NULL || b == NULL)
      tk_note("diff", "condition not checked, nothing of it ended in %s: %s", a == NULL ? "A" : "B",
              condition->text);
    else if (!change.has_interval)
      tk_note("diff", "condition not checked, there are too few generations for an interval: %s",
              condition->text);
    else if (tk_diff_condition_is_exceeded(condition, &change))
      note_exceeded(condition, &change, is_met);
    if (is_met) code = TK_CONDITION;
  }
  return code;
}

static void print_sides(char **side, const struct tk_samples *samples) {
  for (int i = 0; i < 2; i++) {
    double seconds = 0;
    for (unsigned k = 0; k < samples[i].samples; k++) seconds += (double)samples[i].ns[k] / 1e9;
    printf("%c: %s, %.3g s in %llu generations\n", 'A' + i, side[i], seconds,
           (unsigned long long)samples[i].generations);
  }
  puts("");
}

static int compare(const struct diff_options *o, char **side, const struct tk_samples *samples) {
  struct tk_comparison c;

  if (!tk_comparison_new(&c, &samples[0], &samples[1])) return tk_fail("diff", "out of memory");
  if (!o->json) print_sides(side, samples);
  bool whole = tk_diff_print(&c, o->rows, o->json);
  int code = whole ? judge(o, &c) : tk_fail("diff", "out of memory");
  tk_comparison_fini(&c);
  return code;
}

int tk_cmd_diff(int argc, char **argv) {
  struct diff_options o = { .rows = 10 };
  struct tk_samples samples[2];
  int code = tk_options_read(argc, argv, tk_diff_options, &o);

  if (code != TK_DONE) return code;
  if (optind + 2 != argc)
    return tk_usage("diff", "A and B are required: a FILE each, or service=S,since=T,until=T of a "
                            "collector");
  char **side = argv + optind; /* reading a side changes optind */
  tk_samples_init(&samples[0]);
  tk_samples_init(&samples[1]);
  code = read_side(&o, side[0], &samples[0]);
  if (code == TK_DONE) code = read_side(&o, side[1], &samples[1]);
  if (code == TK_DONE) code = compare(&o, side, samples);
  tk_samples_fini(&samples[0]);
  tk_samples_fini(&samples[1]);
  return code;
}
