/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/help/verbs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tools/tracectl/remote/client.h" /* TK_CLIENT_HELP, TK_SELECTOR_HELP */

#define TK_CMD(name, fn, args, about, ...) { name, fn, args, about, "" __VA_ARGS__ },
const struct tk_verb tk_verbs[] = {
#include "tools/tracectl/help/commands.def"
  { NULL, NULL, NULL, NULL, NULL },
};
#undef TK_CMD

#define TK_EXAMPLE(verb, command, about) { verb, command, about },
const struct tk_example tk_examples[] = {
#include "tools/tracectl/help/examples.def"
  { NULL, NULL, NULL },
};
#undef TK_EXAMPLE

const struct tk_verb *tk_verb_find(const char *name) {
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++)
    if (strcmp(v->name, name) == 0) return v;
  return NULL;
}

/* ---- the text of the options ---- */

static size_t indent_of(const char *line) {
  return strspn(line, " ");
}

static struct tk_span take_line(const char **text) {
  struct tk_span line = { *text, strcspn(*text, "\n") };

  *text += line.len + (line.at[line.len] == '\n');
  return line;
}

static void add_about(struct tk_entry *entry, struct tk_span words) {
  size_t n = strlen(entry->about);

  while (words.len > 0 && *words.at == ' ') words.at++, words.len--;
  snprintf(entry->about + n, sizeof entry->about - n, "%s%.*s", n > 0 && words.len > 0 ? " " : "",
           (int)words.len, words.at);
}

static struct tk_span term_of(struct tk_span line) {
  const char *gap = memmem(line.at, line.len, "  ", 2);

  return (struct tk_span){ line.at, gap != NULL ? (size_t)(gap - line.at) : line.len };
}

bool tk_entry_next(const char **text, struct tk_entry *out) {
  if (**text == '\0') return false;
  size_t indent = indent_of(*text);
  struct tk_span line = take_line(text);

  memset(out, 0, sizeof *out);
  line.at += indent;
  line.len -= indent;
  if (indent > 0) {
    out->term = term_of(line);
    line.at += out->term.len;
    line.len -= out->term.len;
  }
  add_about(out, line);
  while (**text != '\0' && (indent > 0 ? indent_of(*text) > indent : indent_of(*text) == 0))
    add_about(out, take_line(text));
  return true;
}

/* One of a term's names, comma and spaces before it skipped. */
static struct tk_span take_name(struct tk_span *term) {
  while (term->len > 0 && (*term->at == ' ' || *term->at == ',')) term->at++, term->len--;
  const char *comma = memmem(term->at, term->len, ", ", 2);
  struct tk_span name = { term->at, comma != NULL ? (size_t)(comma - term->at) : term->len };
  term->at += name.len;
  term->len -= name.len;
  return name;
}

size_t tk_term_options(struct tk_span term, struct tk_option out[TK_OPTIONS_MAX]) {
  bool joins = false; /* the letter before belongs to this name */
  size_t n = 0;

  if (term.len == 0 || *term.at != '-') return 0;
  while (n < TK_OPTIONS_MAX) {
    struct tk_span name = take_name(&term);
    if (name.len < 2 || *name.at != '-') break;
    const char *space = memchr(name.at, ' ', name.len);
    size_t word = space != NULL ? (size_t)(space - name.at) : name.len;
    struct tk_option *option = &out[joins ? n - 1 : n];
    if (!joins) *option = (struct tk_option){ 0 };
    bool is_long = name.at[1] == '-';
    if (is_long)
      option->name = (struct tk_span){ name.at + 2, word - 2 };
    else
      option->letter = name.at[1];
    if (space != NULL) option->arg = (struct tk_span){ space + 1, name.len - word - 1 };
    if (!joins) n++;
    joins = !is_long && space == NULL;
  }
  return n;
}

static bool is(struct tk_span arg, const char *word) {
  return arg.len == strlen(word) && memcmp(arg.at, word, arg.len) == 0;
}

enum tk_arg_kind tk_arg_kind(struct tk_span arg) {
  if (arg.len == 0) return TK_ARG_OTHER;
  if (is(arg, "DIR")) return TK_ARG_DIR;
  if (is(arg, "FILE") || is(arg, "OUT") || memmem(arg.at, arg.len, "@FILE", 5) != NULL)
    return TK_ARG_FILE;
  return memchr(arg.at, '|', arg.len) != NULL && !isupper((unsigned char)*arg.at) ? TK_ARG_WORDS
                                                                                  : TK_ARG_OTHER;
}
