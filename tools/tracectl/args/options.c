/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/args/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/nearest.h"
#include "config/times.h"
#include "tools/tracectl/term/tracectl.h"

enum { ROWS_MAX = 48, LETTERS_MAX = 20, NAME_BYTES = 64, LIST_BYTES = 200, FIRST_ROW = 0x100 };

/* Other names of an option, which every verb that has the option accepts and no help shows. */
static const struct {
  const char *other, *name;
} other_names[] = { { "from", "since" },  { "to", "until" },    { "n", "top" },
                    { "last", "window" }, { "window", "last" }, { "last", "since" } };
/* Names of other programs for the same option; the error says ours, and what is said of it. The first that the verb has counts. */
static const struct {
  const char *old, *name, *more;
} old_names[] = { { "rows", "top", "" },    { "limit", "top", "" },
                  { "format", "to", "" },   { "format", "csv", " or --json" },
                  { "format", "json", "" }, { "thread", "goroutine", " (a C thread's number too)" },
                  { "start", "since", "" }, { "end", "until", "" } };
enum {
  OTHER_NAMES = sizeof other_names / sizeof *other_names,
  OLD_NAMES = sizeof old_names / sizeof *old_names,
};

struct parsing {
  const struct tk_option *row[ROWS_MAX];
  size_t field[ROWS_MAX], rows, names, own; /* own: names that help shows */
  /* names of the rows, other names, old names */
  struct option option[ROWS_MAX + OTHER_NAMES + OLD_NAMES + 2];
  char letters[LETTERS_MAX];
};

/* ---- getopt's tables ---- */

static void add_rows(struct parsing *p, const struct tk_option *row, size_t field) {
  for (; !tk_option_is_end(row); row++) {
    if (row->group != NULL) add_rows(p, row->group, field + row->field);
    if (row->read == NULL) continue;
    size_t i = p->rows++, n = strlen(p->letters);
    p->row[i] = row;
    p->field[i] = field + row->field;
    if (row->name != NULL)
      p->option[p->names++] =
          (struct option){ row->name, row->arg != NULL, NULL, FIRST_ROW + (int)i };
    if (row->letter != 0)
      snprintf(p->letters + n, sizeof p->letters - n, "%c%s", row->letter,
               row->arg != NULL ? ":" : "");
  }
}

static bool has_name(const struct parsing *p, const char *name) {
  for (size_t i = 0; i < p->names; i++)
    if (strcmp(p->option[i].name, name) == 0) return true;
  return false;
}

static size_t find_name(const struct parsing *p, const char *name) {
  for (size_t i = 0; i < p->rows; i++)
    if (p->row[i]->name != NULL && strcmp(p->row[i]->name, name) == 0) return i;
  return ROWS_MAX;
}

static size_t find_letter(const struct parsing *p, int letter) {
  for (size_t i = 0; i < p->rows; i++)
    if (letter != 0 && p->row[i]->letter == letter) return i;
  return ROWS_MAX;
}

/* Is it the name of an option that help shows, or --top for -n? --to is also another name of --until. */
static bool has_own(const struct parsing *p, const char *name) {
  return find_name(p, name) != ROWS_MAX ||
         (strcmp(name, "top") == 0 && find_letter(p, 'n') != ROWS_MAX);
}

/* Returns the index in old_names of the row that has this verb's option for an old name; OLD_NAMES: none. */
static size_t find_new(const struct parsing *p, const char *old) {
  size_t i = 0;

  while (i < OLD_NAMES &&
         (strcmp(old_names[i].old, old) != 0 || !has_own(p, old_names[i].name) || has_name(p, old)))
    i++;
  return i;
}

static void add_name(struct parsing *p, const char *name, size_t row) {
  if (!has_name(p, name))
    p->option[p->names++] = (struct option){ name, required_argument, NULL, FIRST_ROW + (int)row };
}

/* A number of lines or rows is -n or --top. */
static void add_other_names(struct parsing *p) {
  size_t lines = find_letter(p, 'n');

  for (size_t i = 0; i < OTHER_NAMES; i++)
    if (strlen(other_names[i].other) > 1 && find_name(p, other_names[i].name) != ROWS_MAX)
      add_name(p, other_names[i].other, find_name(p, other_names[i].name));
  if (lines != ROWS_MAX) add_name(p, "top", lines);
  if (lines == ROWS_MAX && has_name(p, "top")) strcat(p->letters, "n:");
}

/* Registers the old names of options for getopt, which accepts the beginning of a long name: otherwise it would take --to, another
 * name of --until, for --top. Also in a verb that has no --until. */
static void add_old_names(struct parsing *p) {
  size_t n = p->names;

  for (size_t i = 0; i < OTHER_NAMES; i++)
    if (strlen(other_names[i].other) > 1 && !has_name(p, other_names[i].other))
      p->option[n++] = (struct option){ other_names[i].other, optional_argument, NULL, 0 };
  for (size_t i = 0; i < OLD_NAMES; i++)
    if (find_new(p, old_names[i].old) == i)
      p->option[n++] = (struct option){ old_names[i].old, optional_argument, NULL, 0 };
}

/* ---- complaints ---- */

/* Lists the options with a prefix: "--tls-ca, --tls-cert, --tls-key". Returns their number. */
static unsigned list_beginning(const struct parsing *p, const char *name, char out[LIST_BYTES]) {
  unsigned count = 0;
  size_t n = 0;

  *out = '\0';
  for (size_t i = 0; *name != '\0' && i < p->own; i++) {
    if (strncmp(p->option[i].name, name, strlen(name)) != 0) continue;
    int wrote =
        snprintf(out + n, LIST_BYTES - n, "%s--%s", count++ > 0 ? ", " : "", p->option[i].name);
    n = n + (size_t)wrote < LIST_BYTES ? n + (size_t)wrote : LIST_BYTES - 1;
  }
  return count;
}

/* For a verb that writes on standard output. */
static int complain_of_output(const struct parsing *p, const char *verb, const char *option) {
  const char *form = find_name(p, "csv") != ROWS_MAX    ? ", with --csv or --json"
                     : find_name(p, "json") != ROWS_MAX ? ", with --json"
                                                        : "";

  return tk_usage(verb, "no option %s: the output goes to standard output; write > FILE%s", option,
                  form);
}

static int complain_of_name(const struct parsing *p, const char *verb, const char *word) {
  char name[NAME_BYTES], list[LIST_BYTES];

  snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
  size_t now = find_new(p, name);
  if (now < OLD_NAMES)
    return tk_usage(verb, "no option --%s; use --%s%s", name, old_names[now].name,
                    old_names[now].more);
  if (strcmp(name, "output") == 0 && find_letter(p, 'o') != ROWS_MAX)
    return tk_usage(verb, "no option --output; use -o");
  if (strcmp(name, "output") == 0) return complain_of_output(p, verb, "--output");
  if (has_name(p, name)) return tk_usage(verb, "--%s takes no value", name);
  unsigned count = list_beginning(p, name, list);
  if (count > 1) return tk_usage(verb, "--%s may be one of %s", name, list);
  if (count == 1 && strchr(word, '=') != NULL)
    return tk_usage(verb, "--%s takes no value: it is short for %s", name, list);
  struct tb_nearest nearest = { .word = name };
  for (size_t i = 0; i < p->own; i++) tb_nearest_try(&nearest, p->option[i].name);
  if (nearest.best != NULL)
    return tk_usage(verb, "no option --%s; did you mean --%s?", name, nearest.best);
  return tk_usage(verb, "no option --%s", name);
}

static int complain(const struct parsing *p, int option, char **argv) {
  const char *word = argv[optind - 1];

  /* if letters are combined, word may be the previous argument */
  bool is_letter = option == '?' && optopt > 0 && optopt < FIRST_ROW;

  if (option == ':') return tk_usage(argv[0], "%s needs a value", word);
  if (!is_letter) return complain_of_name(p, argv[0], word);
  if (optopt == 'o') return complain_of_output(p, argv[0], "-o");
  return tk_usage(argv[0], "no option -%c", optopt);
}

/* ---- reading ---- */

/* name: the option as it was typed, for complaints; NULL: its letter. */
static tb_rc read_as(const struct parsing *p, size_t i, const char *name, const char *value,
                     void *target, struct tb_diag *diag) {
  struct tk_option typed = *p->row[i];

  if (name != NULL) typed.name = name;
  return typed.read(&typed, value, (char *)target + p->field[i], diag);
}

/* --last in a verb that has --since: so long before now. */
static tb_rc read_back(const struct parsing *p, size_t since, const char *value, void *target,
                       struct tb_diag *diag) {
  char back[NAME_BYTES];
  uint64_t span_ns;

  if (tc_span_parse(value, NULL, &span_ns) != TB_OK)
    return tb_fail(diag, TB_BROKEN, "--last needs a span of time (10ms, 30s, 5m, 24h), not '%.80s'",
                   value);
  snprintf(back, sizeof back, "-%.60s", value);
  return p->row[since]->read(p->row[since], back, (char *)target + p->field[since], diag);
}

/* i: the row that --last was registered for. In a verb with --window and --since a longer time than the windows is one of the
 * past. */
static tb_rc read_last(const struct parsing *p, size_t i, const char *value, void *target,
                       struct tb_diag *diag) {
  static const uint64_t longest_window_ns = UINT64_C(300000000000);
  size_t since = find_name(p, "since");
  uint64_t span_ns;

  if (i == since) return read_back(p, since, value, target, diag);
  if (since != ROWS_MAX && tc_span_parse(value, NULL, &span_ns) == TB_OK &&
      span_ns > longest_window_ns)
    return read_back(p, since, value, target, diag);
  return read_as(p, i, "last", value, target, diag);
}

static tb_rc read_value(const struct parsing *p, int c, size_t i, int at, const char *value,
                        void *target, struct tb_diag *diag) {
  bool is_last = c >= FIRST_ROW && strcmp(p->option[at].name, "last") == 0;

  if (is_last && p->row[i]->name != NULL && strcmp(p->row[i]->name, "last") != 0)
    return read_last(p, i, value, target, diag);
  return read_as(p, i, c >= FIRST_ROW ? p->option[at].name : NULL, value, target, diag);
}

static size_t find_row(const struct parsing *p, int c) {
  if (c >= FIRST_ROW) return (size_t)(c - FIRST_ROW);
  size_t i = find_letter(p, c);
  return i == ROWS_MAX && c == 'n' ? find_name(p, "top") : i;
}

int tk_options_read(int argc, char **argv, const struct tk_option *options, void *target) {
  struct parsing p = { .letters = ":" }; /* distinguishes a missing value from an unknown option */
  struct tb_diag diag;

  tb_diag_clear(&diag);
  add_rows(&p, options, 0);
  p.own = p.names;
  add_other_names(&p);
  add_old_names(&p);
  for (int c, at = 0; (c = getopt_long(argc, argv, p.letters, p.option, &at)) != -1;) {
    size_t i = find_row(&p, c);
    if (i == ROWS_MAX) return complain(&p, c, argv);
    if (read_value(&p, c, i, at, optarg, target, &diag) != TB_OK)
      return tk_usage(argv[0], "%s", diag.text);
  }
  return TK_DONE;
}

static bool has_option(const struct tk_option *row, const char *name) {
  for (; !tk_option_is_end(row); row++)
    if ((row->name != NULL && strcmp(row->name, name) == 0) ||
        (row->group != NULL && has_option(row->group, name)))
      return true;
  return false;
}

int tk_options_read_all(int argc, char **argv, const struct tk_option *options, void *target) {
  int code = tk_options_read(argc, argv, options, target);

  if (code != TK_DONE || optind == argc) return code;
  const char *word = argv[optind];
  bool is_path = strchr(word, '/') != NULL || access(word, F_OK) == 0;
  if (has_option(options, "service") && !is_path)
    return tk_usage(argv[0], "unexpected argument '%s'; for a service: --service %s", word, word);
  return tk_usage(argv[0], "unexpected argument '%s'", word);
}

/* ---- values ---- */

static const char *shown(const struct tk_option *option, char out[NAME_BYTES]) {
  if (option->name != NULL)
    snprintf(out, NAME_BYTES, "--%s", option->name);
  else
    snprintf(out, NAME_BYTES, "-%c", option->letter);
  return out;
}

tb_rc tk_option_needs(const struct tk_option *option, const char *what, const char *value,
                      struct tb_diag *diag) {
  char name[NAME_BYTES];

  return tb_fail(diag, TB_BROKEN, "%s needs %s, not '%.80s'", shown(option, name), what, value);
}

tb_rc tk_option_fails(const struct tk_option *option, struct tb_diag *diag) {
  char name[NAME_BYTES];
  struct tb_diag why = *diag;

  tb_diag_clear(diag);
  return tb_fail(diag, TB_BROKEN, "%s: %.180s", shown(option, name), why.text);
}

static bool parse_number(const char *text, uint64_t *out) {
  char *end;

  errno = 0;
  *out = strtoull(text, &end, 10);
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out <= INT64_MAX;
}

tb_rc tk_read_flag(const struct tk_option *option, const char *value, void *field,
                   struct tb_diag *diag) {
  (void)option;
  (void)value;
  (void)diag;
  *(bool *)field = true;
  return TB_OK;
}

tb_rc tk_read_text(const struct tk_option *option, const char *value, void *field,
                   struct tb_diag *diag) {
  (void)option;
  (void)diag;
  *(const char **)field = value;
  return TB_OK;
}

tb_rc tk_read_texts(const struct tk_option *option, const char *value, void *field,
                    struct tb_diag *diag) {
  struct tk_texts *texts = field;
  char name[NAME_BYTES];

  if (texts->n == TK_TEXTS_MAX)
    return tb_fail(diag, TB_BROKEN, "%s can be given at most %d times", shown(option, name),
                   TK_TEXTS_MAX);
  texts->text[texts->n++] = value;
  return TB_OK;
}

tb_rc tk_read_number(const struct tk_option *option, const char *value, void *field,
                     struct tb_diag *diag) {
  uint64_t number;

  if (!parse_number(value, &number) || number > INT32_MAX)
    return tk_option_needs(option, "a number", value, diag);
  *(unsigned *)field = (unsigned)number;
  return TB_OK;
}

tb_rc tk_read_count(const struct tk_option *option, const char *value, void *field,
                    struct tb_diag *diag) {
  if (parse_number(value, field) && *(uint64_t *)field != 0) return TB_OK;
  return tk_option_needs(option, "a number of 1 or more", value, diag);
}

/* Lists the words between bars: "10s, 1m, 5m or all". */
static void list_words(const char *words, char out[LIST_BYTES]) {
  size_t n = 0;

  for (bool is_first = true; *words != '\0' && n < LIST_BYTES; is_first = false) {
    size_t len = strcspn(words, "|");
    bool is_last = words[len] == '\0';
    n += (size_t)snprintf(out + n, LIST_BYTES - n, "%s%.*s",
                          is_first  ? ""
                          : is_last ? " or "
                                    : ", ",
                          (int)len, words);
    words += len + !is_last;
  }
}

/* Returns the only word that begins with value, which has lost its end; its length; 0: there is none. */
static size_t find_longer(const char *words, const char *value, const char **out) {
  size_t found = 0, n = strlen(value);

  while (*words != '\0') {
    size_t len = strcspn(words, "|");
    if (n > 0 && len > n && strncmp(words, value, n) == 0) {
      if (found > 0) return 0;
      found = len;
      *out = words;
    }
    words += len + (words[len] == '|');
  }
  return found;
}

static tb_rc refuse_word(const struct tk_option *option, const char *value, struct tb_diag *diag) {
  char name[NAME_BYTES], words[LIST_BYTES] = "";
  const char *longer = "";
  size_t n = find_longer(option->arg, value, &longer);

  list_words(option->arg, words);
  return tb_fail(diag, TB_BROKEN, "%s '%.40s': use %.120s%s%.*s%s", shown(option, name), value,
                 words, n > 0 ? "; did you mean " : "", (int)n, longer, n > 0 ? "?" : "");
}

tb_rc tk_read_word(const struct tk_option *option, const char *value, void *field,
                   struct tb_diag *diag) {
  unsigned which = 0;

  for (const char *word = option->arg; *word != '\0'; which++) {
    size_t n = strcspn(word, "|");
    if (strlen(value) == n && strncmp(word, value, n) == 0) {
      *(unsigned *)field = which;
      return TB_OK;
    }
    word += n + (word[n] == '|');
  }
  return refuse_word(option, value, diag);
}

tb_rc tk_read_time(const struct tk_option *option, const char *value, void *field,
                   struct tb_diag *diag) {
  if (tc_time_parse(value, tc_wall_ns(), NULL, field) == TB_OK) return TB_OK;
  return tk_option_needs(option, "a time (2026-03-01T12:00:00Z, -5m, now or @UNIX)", value, diag);
}

tb_rc tk_read_span(const struct tk_option *option, const char *value, void *field,
                   struct tb_diag *diag) {
  if (tc_span_parse(value, NULL, field) == TB_OK) return TB_OK;
  return tk_option_needs(option, "a span of time (10ms, 30s, 5m, 24h)", value, diag);
}

tb_rc tk_read_at(const struct tk_option *option, const char *value, void *field,
                 struct tb_diag *diag) {
  struct tk_at *at = field;
  uint64_t number;

  at->is_given = true;
  at->is_wall = !parse_number(value, &number);
  at->at = (int64_t)number;
  return at->is_wall ? tk_read_time(option, value, &at->wall_ns, diag) : TB_OK;
}
