/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl diff A B: what got slower, with intervals. Each is a file, or what a collector has: service=shop,from=-2h,to=-1h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/diff/condition.h"
#include "tools/tracectl/diff/print.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/inputs/inputs.h"
#include "tools/tracectl/term/tracectl.h"

enum { OPT_JSON = 1, OPT_TOP, OPT_FAIL_ON, CONDITIONS_MAX = 16 };

struct diff_options {
  struct tk_inputs common; /* --server, --certs, --no-progress */
  bool json;
  size_t rows;
  struct tk_diff_condition condition[CONDITIONS_MAX];
  size_t conditions;
};

static int take_condition(struct diff_options *o, const char *value) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (o->conditions == CONDITIONS_MAX)
    return tk_usage("diff", "--fail-on: at most %d of them", CONDITIONS_MAX);
  tb_rc rc = tk_diff_condition_parse(value, &diag, &o->condition[o->conditions++]);
  return rc == TB_OK ? TK_DONE : tk_usage("diff", "--fail-on: %s", diag.text);
}

static int take_option(struct diff_options *o, int option, const char *value) {
  switch (option) {
  case OPT_JSON: o->json = true; return TK_DONE;
  case OPT_TOP: return tk_rows_parse("diff", value, &o->rows) ? TK_DONE : TK_USAGE;
  case OPT_FAIL_ON: return take_condition(o, value);
  default: return tk_inputs_option(&o->common, option, value);
  }
}

/* ---- the two sides ---- */

/* One "name=value" of a collector's side. */
static int take_word(struct tk_inputs *in, char *word) {
  static const struct {
    const char *name;
    int option;
  } words[] = { { "service", TK_OPT_SERVICE }, { "instance", TK_OPT_INSTANCE },
                { "stream", TK_OPT_STREAM },   { "from", TK_OPT_FROM },
                { "to", TK_OPT_TO },           { "last", TK_OPT_LAST },
                { "gen", TK_OPT_GEN } };
  char *value = strchr(word, '=');

  if (value == NULL) return tk_usage("diff", "\"%s\" is no NAME=VALUE", word);
  *value++ = 0;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i].name, word) == 0) return tk_inputs_option(in, words[i].option, value);
  return tk_usage("diff", "\"%s\": one of service, instance, stream, from, to, last, gen", word);
}

/* text is changed. */
static int take_words(struct tk_inputs *in, char *text) {
  int code = TK_DONE;
  char *rest = NULL;

  in->is_remote = true;
  for (char *word = strtok_r(text, ",", &rest); code == TK_DONE && word != NULL;
       word = strtok_r(NULL, ",", &rest))
    code = take_word(in, word);
  return code;
}

static int read_places(const struct tk_inputs *in, const char *side, struct tk_samples *out) {
  char error[TK_QUERY_ERROR] = "";

  for (size_t i = 0; i < in->n; i++)
    if (!tk_samples_read(out, &in->place[i], error))
      return error[0] == 0 ? TK_FAILED : tk_fail("diff", "%s", error);
  return out->generations > 0 ? TK_DONE : tk_fail("diff", "%s: nothing in it has ended", side);
}

static int read_side(const struct diff_options *o, char *side, struct tk_samples *out) {
  struct tk_inputs in = { .verb = "diff",
                          .client = o->common.client,
                          .no_progress = o->common.no_progress };
  bool is_file = strchr(side, '=') == NULL || access(side, F_OK) == 0;
  char *words = strdup(side);

  int code = words == NULL ? tk_fail("diff", "out of memory") : TK_DONE;
  if (code == TK_DONE && !is_file) code = take_words(&in, words);
  if (code == TK_DONE) code = tk_inputs_open(&in, is_file ? &side : NULL, is_file ? 1 : 0);
  if (code == TK_DONE) code = read_places(&in, side, out);
  tk_inputs_close(&in);
  free(words);
  return code;
}

/* ---- the answer ---- */

static int judge(const struct diff_options *o, struct tk_comparison *c) {
  int code = TK_DONE;

  for (size_t i = 0; i < o->conditions; i++) {
    const struct tk_diff_condition *condition = &o->condition[i];
    const struct tk_diff_row *a = tk_samples_find(c->a, condition->metric, condition->key);
    const struct tk_diff_row *b = tk_samples_find(c->b, condition->metric, condition->key);
    struct tk_change change = tk_compare(c, a, b, condition->field);
    if (a == NULL || b == NULL)
      tk_note("diff", "condition not checked, nothing of it ended in %s: %s", a == NULL ? "A" : "B",
              condition->text);
    else if (!change.has_interval)
      tk_note("diff", "condition not checked, there are too few generations for an interval: %s",
              condition->text);
    if (!tk_diff_condition_is_met(condition, &change)) continue;
    tk_note("diff", "condition met: %s: %+.1f %% (%+.1f..%+.1f)", condition->text,
            100 * change.share, 100 * change.low, 100 * change.high);
    code = TK_CONDITION;
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
  puts("A change has its 95 % interval, and a * where that is on one side of zero.\n");
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
  static const struct option options[] = {
    { "json", no_argument, NULL, OPT_JSON },
    { "top", required_argument, NULL, OPT_TOP },
    { "fail-on", required_argument, NULL, OPT_FAIL_ON },
    { "no-progress", no_argument, NULL, TK_OPT_NO_PROGRESS },
    TK_CLIENT_OPTIONS,
    { 0 },
  };
  struct diff_options o = { .common = { .verb = "diff" }, .rows = 10 };
  struct tk_samples samples[2];
  int code;

  for (int c; (c = tk_option_next(argc, argv, "", options)) != -1;)
    if ((code = take_option(&o, c, optarg)) != TK_DONE) return code;
  if (optind + 2 != argc)
    return tk_usage("diff",
                    "A and B are wanted: a FILE each, or service=S,from=T,to=T of a collector");
  tk_samples_init(&samples[0]);
  tk_samples_init(&samples[1]);
  code = read_side(&o, argv[optind], &samples[0]);
  if (code == TK_DONE) code = read_side(&o, argv[optind + 1], &samples[1]);
  if (code == TK_DONE) code = compare(&o, argv + optind, samples);
  tk_samples_fini(&samples[0]);
  tk_samples_fini(&samples[1]);
  return code;
}
