/* SPDX-License-Identifier: Apache-2.0 */
/* Reads line by line, word by word. An event is read into a struct of its own before it is added to the table: so a repeated
 * declaration can be compared with the first one, and a refused one leaves nothing in the table. */
#include "wire/experiments.h"

#include <stdio.h>
#include <string.h>

struct word {
  const char *at;
  size_t len;
};

struct reading {
  struct tw_experiments *x;
  bool numbered;
  unsigned line;
  const char *pos, *end; /* of the line */
  int experiment;        /* index of the current experiment; -1: none yet */
  struct tb_diag *diag;
};

static const char *const contexts[TW_CONTEXTS] = { "MPG", "MP", "M", "any" };

static const struct {
  const char *name;
  enum tw_arg_type type;
} arg_types[] = {
  { "string", TW_ARG_STRING },
  { "g", TW_ARG_G },
  { "stack", TW_ARG_STACK },
  { "value", TW_ARG_VALUE },
  { "seq", TW_ARG_SEQ },
  { "m", TW_ARG_M },
  { "p", TW_ARG_P },
  { "task", TW_ARG_TASK },
  { "pstatus", TW_ARG_PSTATUS },
  { "gstatus", TW_ARG_GSTATUS },
};

const char *tw_arg_type_name(enum tw_arg_type type) {
  size_t i = 0;

  while (arg_types[i].type != type) i++;
  return arg_types[i].name;
}

const char *tw_context_name(enum tw_context context) {
  return contexts[context];
}

void tw_experiments_init(struct tw_experiments *x) {
  x->experiments = x->sequences = x->events = 0;
  x->text_bytes = 0;
  memset(x->place, 0, sizeof x->place);
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static bool next_word(struct reading *r, struct word *out) {
  while (r->pos < r->end && is_space(*r->pos)) r->pos++;
  out->at = r->pos;
  while (r->pos < r->end && !is_space(*r->pos)) r->pos++;
  out->len = (size_t)(r->pos - out->at);
  return out->len > 0;
}

static bool word_is(struct word word, const char *text) {
  return strlen(text) == word.len && memcmp(word.at, text, word.len) == 0;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns true for a letter followed by letters, digits and underscores, as a name in C. */
static bool is_name(struct word word, size_t len_max) {
  if (word.len == 0 || word.len > len_max || !is_letter(word.at[0])) return false;
  for (size_t i = 1; i < word.len; i++)
    if (!is_letter(word.at[i]) && !(word.at[i] >= '0' && word.at[i] <= '9') && word.at[i] != '_')
      return false;
  return true;
}

/* Splits "id=137": *out is the text after the sign. */
static bool is_setting(struct word word, const char *key, struct word *out) {
  size_t n = strlen(key);

  if (word.len <= n || memcmp(word.at, key, n) != 0 || word.at[n] != '=') return false;
  *out = (struct word){ word.at + n + 1, word.len - n - 1 };
  return true;
}

static bool read_number(struct word word, unsigned *out) {
  *out = 0;
  if (word.len == 0 || word.len > 3) return false;
  for (size_t i = 0; i < word.len; i++) {
    if (word.at[i] < '0' || word.at[i] > '9') return false;
    *out = *out * 10 + (unsigned)(word.at[i] - '0');
  }
  return *out <= UINT8_MAX;
}

#define REFUSE(r, rc, format, ...)                                                                 \
  tb_fail((r)->diag, rc, "line %u: " format, (r)->line __VA_OPT__(, ) __VA_ARGS__)

static tb_rc keep(struct reading *r, struct word word, const char **out) {
  struct tw_experiments *x = r->x;

  if (word.len + 1 > sizeof x->text - x->text_bytes)
    return REFUSE(r, TB_BROKEN, "all names together have more than %d bytes",
                  TW_EXPERIMENTS_TEXT_MAX);
  char *copy = x->text + x->text_bytes;
  memcpy(copy, word.at, word.len);
  copy[word.len] = '\0';
  x->text_bytes += word.len + 1;
  *out = copy;
  return TB_OK;
}

/* Reads id=N, if lines are numbered. */
static tb_rc take_number(struct reading *r, unsigned first, unsigned last, uint8_t *out) {
  struct word word, text;
  const char *before = r->pos;
  unsigned number;

  *out = 0;
  if (!next_word(r, &word) || !is_setting(word, "id", &text)) {
    r->pos = before;
    return r->numbered ? REFUSE(r, TB_BROKEN, "no id=") : TB_OK;
  }
  if (!r->numbered)
    return REFUSE(r, TB_BROKEN, "an id= is given; the agent chooses it when it registers");
  if (!read_number(text, &number) || number < first || number > last)
    return REFUSE(r, TB_BROKEN, "id is not %u to %u", first, last);
  *out = (uint8_t)number;
  return TB_OK;
}

/* experiment NAME */

static tb_rc take_experiment(struct reading *r) {
  struct tw_experiments *x = r->x;
  struct word name, more;
  uint8_t number;

  if (!next_word(r, &name) || !is_name(name, TW_EXPERIMENT_NAME_MAX))
    return REFUSE(r, TB_BROKEN,
                  "an experiment's name is a letter, then letters, digits and _, at most %d",
                  TW_EXPERIMENT_NAME_MAX);
  for (uint8_t i = 0; i < TW_EXPERIMENTS; i++)
    if (word_is(name, tw_experiment_name(i)))
      return REFUSE(r, TB_BROKEN, "experiment %s is Go's own", tw_experiment_name(i));
  TB_TRY(take_number(r, TW_EXPERIMENT_FIRST, TW_EXPERIMENT_SPECS - 1, &number));
  if (next_word(r, &more)) return REFUSE(r, TB_BROKEN, "more words than an experiment has");
  for (unsigned i = 0; i < x->experiments; i++) {
    bool named = word_is(name, x->experiment[i].name);
    bool numbered = number != 0 && x->experiment[i].number == number;
    if (!named && !numbered) continue;
    if (!named || !numbered)
      return REFUSE(r, TB_BROKEN,
                    "experiment %.*s was already declared with another name or number",
                    (int)name.len, name.at);
    r->experiment = (int)i;
    return TB_OK;
  }
  if (x->experiments == TW_EXPERIMENTS_MAX)
    return REFUSE(r, TB_BROKEN, "more than %d experiments", TW_EXPERIMENTS_MAX);
  TB_TRY(keep(r, name, &x->experiment[x->experiments].name));
  x->experiment[x->experiments].number = number;
  r->experiment = (int)x->experiments++;
  return TB_OK;
}

/* event NAME [id=N] [ctx=C] ARG... */

enum tw_arg_type tw_arg_type_of(const char *label) {
  const char *last = strrchr(label, '_'), *suffix = last == NULL ? label : last + 1;

  for (size_t i = 0; i < sizeof arg_types / sizeof *arg_types; i++)
    if (strcmp(suffix, arg_types[i].name) == 0) return arg_types[i].type;
  return TW_ARG_VALUE;
}

/* Returns true if the argument's label is X or X_type, where X is the first len bytes of `what`. */
static bool is_of(const struct tw_arg *arg, const char *what, size_t len) {
  if (strncmp(arg->label, what, len) != 0) return false;
  if (arg->label[len] == '\0') return true;
  return arg->label[len] == '_' && strchr(arg->label + len + 1, '_') == NULL &&
         (arg->type != TW_ARG_VALUE || strcmp(arg->label + len + 1, "value") == 0);
}

static tb_rc find_sequence(struct reading *r, struct word name, uint8_t *out) {
  struct tw_experiments *x = r->x;
  uint8_t i = 0;

  for (; i < x->sequences; i++)
    if (x->sequence[i].experiment == r->experiment && word_is(name, x->sequence[i].name)) break;
  *out = i;
  if (i < x->sequences) return TB_OK;
  if (i == TW_SEQUENCES_MAX)
    return REFUSE(r, TB_BROKEN, "more than %d sequences", TW_SEQUENCES_MAX);
  TB_TRY(keep(r, name, &x->sequence[i].name));
  x->sequence[i].experiment = (uint8_t)r->experiment;
  x->sequences++;
  return TB_OK;
}

static tb_rc take_sequence(struct reading *r, struct tw_own_event *event) {
  const struct tw_arg *args = event->spec.args;

  for (unsigned i = 0; i < event->spec.nargs; i++) {
    if (args[i].type != TW_ARG_SEQ) continue;
    if (event->seq_arg >= 0)
      return REFUSE(r, TB_BROKEN, "event %s has two sequence numbers", event->spec.name);
    event->seq_arg = (int8_t)i;
  }
  if (event->seq_arg < 0) return TB_OK;
  const char *label = args[event->seq_arg].label, *last = strrchr(label, '_');
  size_t len = last == NULL ? strlen(label) : (size_t)(last - label);
  for (unsigned i = 0; i < event->spec.nargs; i++)
    if ((int8_t)i != event->seq_arg && is_of(&args[i], label, len)) event->of_arg = (int8_t)i;
  return find_sequence(r, (struct word){ label, len }, &event->sequence);
}

static tb_rc take_arg(struct reading *r, struct word word, struct tw_own_event *event) {
  struct tw_spec *spec = &event->spec;

  if (!is_name(word, TW_ARG_LABEL_MAX))
    return REFUSE(r, TB_BROKEN,
                  "event %s: argument %u is not a name(_type)? of at most %d letters, digits and _",
                  spec->name, spec->nargs + 1u, TW_ARG_LABEL_MAX);
  if (spec->nargs == TW_TIMED_ARGS_MAX)
    return REFUSE(r, TB_BROKEN, "event %s has more than %d arguments", spec->name,
                  TW_TIMED_ARGS_MAX);
  for (unsigned i = 0; i < spec->nargs; i++)
    if (word_is(word, spec->args[i].label))
      return REFUSE(r, TB_BROKEN, "event %s has two arguments %s", spec->name, spec->args[i].label);
  struct tw_arg *arg = &spec->args[spec->nargs];
  TB_TRY(keep(r, word, &arg->label));
  arg->type = tw_arg_type_of(arg->label);
  if (strcmp(arg->label, "dt") == 0)
    return REFUSE(r, TB_BROKEN, "event %s: every event has its dt, it is not named", spec->name);
  spec->nargs++;
  return TB_OK;
}

static tb_rc take_context(struct reading *r, struct word text, struct tw_own_event *event) {
  for (uint8_t i = 0; i < TW_CONTEXTS; i++) {
    if (!word_is(text, contexts[i])) continue;
    event->context = i;
    return TB_OK;
  }
  return REFUSE(r, TB_BROKEN, "event %s: ctx is MPG, MP, M or any", event->spec.name);
}

static bool same(const struct tw_own_event *a, const struct tw_own_event *b) {
  if (a->type != b->type || a->experiment != b->experiment || a->context != b->context ||
      a->spec.nargs != b->spec.nargs || strcmp(a->spec.name, b->spec.name) != 0)
    return false;
  for (unsigned i = 0; i < a->spec.nargs; i++)
    if (strcmp(a->spec.args[i].label, b->spec.args[i].label) != 0) return false;
  return true;
}

/* Sets *out_again if the same event is declared already; refuses a different one of that name or number. */
static tb_rc look_for(struct reading *r, const struct tw_own_event *event, bool *out_again) {
  const struct tw_experiments *x = r->x;

  *out_again = false;
  for (unsigned i = 0; i < x->events; i++) {
    const struct tw_own_event *known = &x->event[i];
    bool numbered = event->type != 0 && known->type == event->type;
    bool named =
        known->experiment == event->experiment && strcmp(known->spec.name, event->spec.name) == 0;
    if (!numbered && !named) continue;
    if (event->type == 0 || !same(known, event))
      return REFUSE(r, TB_BROKEN, "event %s was already declared%s", event->spec.name,
                    event->type == 0 ? "" : " with a different layout");
    *out_again = true;
  }
  return TB_OK;
}

static tb_rc read_event(struct reading *r, struct tw_own_event *event) {
  struct word word, text;

  if (!next_word(r, &word) || !is_name(word, TW_EXPERIMENT_NAME_MAX))
    return REFUSE(r, TB_BROKEN,
                  "an event's name is a letter, then letters, digits and _, at most %d",
                  TW_EXPERIMENT_NAME_MAX);
  TB_TRY(keep(r, word, &event->spec.name));
  TB_TRY(take_number(r, TW_OWN_EVENT_FIRST, UINT8_MAX, &event->type));
  for (bool first = true; next_word(r, &word); first = false) {
    if (first && is_setting(word, "ctx", &text))
      TB_TRY(take_context(r, text, event));
    else
      TB_TRY(take_arg(r, word, event));
  }
  return take_sequence(r, event);
}

static tb_rc take_event(struct reading *r) {
  struct tw_experiments *x = r->x;
  struct tw_own_event event = { .spec = { .kind = TW_KIND_EXPERIMENT, .since = 23 },
                                .experiment = (uint8_t)r->experiment,
                                .seq_arg = -1,
                                .of_arg = -1 };
  size_t text_bytes = x->text_bytes;
  unsigned sequences = x->sequences;
  bool again = false;

  if (r->experiment < 0) return REFUSE(r, TB_BROKEN, "an event before the first experiment");
  tb_rc rc = read_event(r, &event);
  if (rc == TB_OK) rc = look_for(r, &event, &again);
  if (rc == TB_OK && !again && x->events == TW_OWN_EVENTS_MAX)
    rc = REFUSE(r, TB_BROKEN, "more than %d events", TW_OWN_EVENTS_MAX);
  if (rc != TB_OK || again) {
    x->text_bytes = text_bytes;
    x->sequences = sequences;
    return rc;
  }
  x->event[x->events++] = event;
  if (event.type != 0) x->place[event.type - TW_OWN_EVENT_FIRST] = (uint8_t)x->events;
  return TB_OK;
}

static tb_rc take_line(struct reading *r) {
  const char *comment = memchr(r->pos, '#', (size_t)(r->end - r->pos));
  struct word word;

  if (comment != NULL) r->end = comment;
  if (!next_word(r, &word)) return TB_OK;
  if (word_is(word, "experiment")) return take_experiment(r);
  if (word_is(word, "event")) return take_event(r);
  return REFUSE(r, TB_BROKEN, "a line begins with experiment, event or #");
}

tb_rc tw_experiments_read(struct tw_experiments *x, const char *text, size_t len, bool numbered,
                          struct tb_diag *diag) {
  struct reading r = { .x = x, .numbered = numbered, .experiment = -1, .diag = diag };
  const char *end = text + len;

  while (text < end) {
    const char *line_end = memchr(text, '\n', (size_t)(end - text));
    r.pos = text;
    r.end = line_end == NULL ? end : line_end;
    r.line++;
    text = line_end == NULL ? end : line_end + 1;
    TB_TRY(take_line(&r));
  }
  return TB_OK;
}

bool tw_experiments_text(uint8_t experiment, const unsigned char *data, size_t len,
                         const char **out_text, size_t *out_len) {
  const size_t magic = sizeof TW_EXPERIMENTS_MAGIC - 1;

  if (experiment != TW_EXPERIMENT_SPECS || len < magic) return false;
  if (memcmp(data, TW_EXPERIMENTS_MAGIC, magic) != 0) return false;
  *out_text = (const char *)data + magic;
  *out_len = len - magic;
  return true;
}

size_t tw_experiment_write(const struct tw_experiments *x, unsigned experiment,
                           char out[TW_EXPERIMENT_LINE_MAX]) {
  return (size_t)snprintf(out, TW_EXPERIMENT_LINE_MAX, "experiment %s id=%u\n",
                          x->experiment[experiment].name, x->experiment[experiment].number);
}

/* The longest line has 6 + 48 + 7 + 8 + 4 * 33 + 1 bytes, because names have a maximum length. */
size_t tw_own_event_write(const struct tw_own_event *event, char out[TW_EXPERIMENT_LINE_MAX]) {
  int n = snprintf(out, TW_EXPERIMENT_LINE_MAX, "event %s id=%u ctx=%s", event->spec.name,
                   event->type, contexts[event->context]);

  for (unsigned i = 0; i < event->spec.nargs; i++)
    n += snprintf(out + n, TW_EXPERIMENT_LINE_MAX - (size_t)n, " %s", event->spec.args[i].label);
  out[n++] = '\n';
  out[n] = '\0';
  return (size_t)n;
}
