/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/words.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "online/analysis/analysis.h"
#include "online/event/view.h"
#include "online/spans/spans.h"
#include "tools/tracectl/names/meant.h"
#include "tools/tracectl/term/tracectl.h"

enum { LISTED_MAX = 20 }; /* more words are not printed in a message */

#define TO_STW_REASON(text, ...) text,
static const char *const stop_reasons[] = {
#include "online/event/stw_reasons.def"
};
#undef TO_STW_REASON

enum { STOP_REASONS = sizeof stop_reasons / sizeof *stop_reasons };

static const char *span_kind(unsigned i) {
  static const enum to_span_kind kinds[] = { TO_SPAN_GOROUTINE, TO_SPAN_SYSCALL, TO_SPAN_PROC,
                                             TO_SPAN_THREAD, TO_SPAN_RANGE };

  return i < sizeof kinds / sizeof *kinds ? to_span_kind_name(kinds[i]) : NULL;
}

static const char *span_state(unsigned i) {
  static const char *const states[] = { "runnable", "running",   "waiting", "syscall",
                                        "with-p",   "without-p", "idle",    "blocked" };
  enum { STATES = sizeof states / sizeof *states };

  if (i < STATES) return states[i];
  return i - STATES <= TO_RANGE_GC_MARK_ASSIST
             ? to_range_info((enum to_range_kind)(i - STATES))->name
             : NULL;
}

static const char *wait_reason(unsigned i) {
  return i + 1 < TO_REASONS ? to_reason_info((enum to_reason)(i + 1))->text : NULL;
}

static const char *stop_reason(unsigned i) {
  return i < STOP_REASONS ? stop_reasons[i] : NULL;
}

static const char *span_reason(unsigned i) {
  return i + 1 < TO_REASONS ? wait_reason(i) : stop_reason(i + 1 - TO_REASONS);
}

static const char *event_kind(unsigned i) {
  return i < TO_KIND_EXPERIMENTAL ? to_event_kind_name((enum to_event_kind)(i + 1)) : NULL;
}

static const char *report_kind(unsigned i) {
  return i < TO_ANALYSIS_KINDS ? to_analysis_name((enum to_analysis_kind)i) : NULL;
}

static const char *verdict(unsigned i) {
  static const char *const verdicts[] = { "ok", "broken" };

  return i < 2 ? verdicts[i] : NULL;
}

static const struct names {
  const char *table, *column;
  const char *(*at)(unsigned i);
} all[] = {
  { "spans", "kind", span_kind },
  { "spans", "state", span_state },
  { "spans", "reason", span_reason },
  { "waits", "reason", wait_reason },
  { "stops", "reason", stop_reason },
  { "events", "kind", event_kind },
  { "reports", "kind", report_kind },
  { "generations", "verdict", verdict },
  { NULL, NULL, NULL },
};

static const struct names *find(const char *table, const char *column) {
  for (const struct names *n = all; n->table != NULL; n++)
    if (strcmp(n->table, table) == 0 && strcmp(n->column, column) == 0) return n;
  return NULL;
}

const char *tk_words_at(const char *table, const char *column, unsigned i) {
  const struct names *names = find(table, column);

  return names == NULL ? NULL : names->at(i);
}

static bool matches(const char *known, const char *word, enum tk_word_match match) {
  switch (match) {
  case TK_WORD_LIKE: return sqlite3_strlike(word, known, 0) == 0;
  case TK_WORD_GLOB: return sqlite3_strglob(word, known) == 0;
  default: return strcmp(known, word) == 0;
  }
}

static bool has(const struct names *names, const char *word, enum tk_word_match match) {
  const char *known;

  for (unsigned i = 0; (known = names->at(i)) != NULL; i++)
    if (matches(known, word, match)) return true;
  return false;
}

const char *tk_words_column(const char *name, size_t len) {
  for (const struct names *n = all; n->table != NULL; n++)
    if (strlen(n->column) == len && sqlite3_strnicmp(n->column, name, (int)len) == 0)
      return n->column;
  return NULL;
}

const char *tk_words_about(const char *reason) {
  for (unsigned i = 1; i < TO_REASONS; i++)
    if (strcmp(to_reason_info((enum to_reason)i)->text, reason) == 0)
      return to_reason_info((enum to_reason)i)->about;
  return NULL;
}

static bool is_of_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

bool tk_words_in(const char *sql, const char *name) {
  size_t len = strlen(name);

  for (const char *at = sql; (at = strcasestr(at, name)) != NULL; at++)
    if ((at == sql || !is_of_word(at[-1])) && !is_of_word(at[len])) return true;
  return false;
}

/* A wait's reason by what reports call it, or what it is about: "I/O wait", "mutex". */
static const char *reason_about(const char *word) {
  for (unsigned i = 1; i < TO_REASONS; i++)
    if (strcasestr(to_reason_info((enum to_reason)i)->display, word) != NULL)
      return to_reason_info((enum to_reason)i)->text;
  for (unsigned i = 1; i < TO_REASONS; i++)
    if (strcasestr(to_reason_info((enum to_reason)i)->about, word) != NULL)
      return to_reason_info((enum to_reason)i)->text;
  return NULL;
}

static bool has_reasons(const struct names *names) {
  return names->at == span_reason || names->at == wait_reason;
}

static const char *near(const struct names *names, const char *word) {
  struct tb_nearest nearest = { .word = word };
  const char *known, *part = NULL;

  if (names->at == report_kind) return tk_kind_meant(word);
  for (unsigned i = 0; (known = names->at(i)) != NULL; i++) {
    tb_nearest_try(&nearest, known);
    if (part == NULL && strlen(word) > 1 && strcasestr(known, word) != NULL) part = known;
  }
  if (nearest.best != NULL) return nearest.best;
  if (part == NULL && has_reasons(names)) part = reason_about(word);
  return part;
}

/* Says which other calls have the same reason as a mutex. */
static const char *more_of(const struct names *names, const char *reason) {
  if (!has_reasons(names) || strcmp(reason, "sync") != 0) return "";
  return " It has Mutex, RWMutex and WaitGroup: call(stack) tells which";
}

/* Names the place of a word that is not a kind of spans. */
static const char *elsewhere(const struct names *names, const char *word) {
  static const struct {
    const char *part, *where;
  } guesses[] = { { "stw", "the view stops has stop-the-world pauses" },
                  { "stop", "the view stops has stop-the-world pauses" },
                  { "pause", "the view stops has stop-the-world pauses" },
                  { "wait", "the view waits has what goroutines wait for" },
                  { "block", "the view waits has what goroutines wait for" },
                  { "mutex", "the view waits has locks: reason='sync'" },
                  { "lock", "the view waits has locks: reason='sync'" },
                  { "chan", "the view waits has channels: reason LIKE 'chan %'" },
                  { "net", "the view waits has the network: reason='network'" },
                  { "gc", "kind='range' has the collector's work: state LIKE 'GC %'" },
                  { "task", "tasks is a table of its own" },
                  { "region", "regions is a table of its own" },
                  { "sample", "samples is a table of its own" },
                  { "log", "logs is a table of its own" } };

  for (size_t i = 0; names->at == span_kind && i < sizeof guesses / sizeof *guesses; i++)
    if (strcasestr(word, guesses[i].part) != NULL) return guesses[i].where;
  return NULL;
}

static void list(const struct names *names, char *text, size_t size) {
  const char *known;
  size_t len = 0;
  unsigned n = 0;

  while (names->at(n) != NULL) n++;
  if (n > LISTED_MAX) {
    snprintf(text, size, "tracectl query --schema %s lists those that are known", names->table);
    return;
  }
  for (unsigned i = 0; (known = names->at(i)) != NULL && len < size; i++)
    len += (size_t)snprintf(text + len, size - len, "%s%s", i == 0 ? "there are " : ", ", known);
}

static bool is_said(struct tk_words_said *said, const char *word) {
  for (unsigned i = 0; i < said->n; i++)
    if (strcmp(said->word[i], word) == 0) return true;
  if (said->n == TK_WORDS_SAID) return true;
  snprintf(said->word[said->n++], TK_WORDS_TEXT, "%s", word);
  return false;
}

/* Returns the words of a column of the statement's tables, if none has the word; otherwise NULL. */
static const struct names *without(const char *sql, const char *column, const char *word,
                                   enum tk_word_match match) {
  const struct names *first = NULL;

  for (const struct names *n = all; n->table != NULL; n++) {
    if (strcmp(n->column, column) != 0 || !tk_words_in(sql, n->table)) continue;
    if (has(n, word, match)) return NULL;
    if (first == NULL) first = n;
  }
  return first;
}

/* Copies a pattern's longest piece without wildcards. */
static void plain_part(const char *pattern, char out[TK_WORDS_TEXT]) {
  size_t longest = 0;

  out[0] = 0;
  for (const char *at = pattern; *at != 0;) {
    size_t len = strcspn(at, "%_*?");
    if (len > longest) {
      longest = len;
      memcpy(out, at, len);
      out[len] = 0;
    }
    at += len + strspn(at + len, "%_*?");
  }
}

void tk_words_check(struct tk_words_said *said, const char *sql, const char *column,
                    const char *word, enum tk_word_match match) {
  const struct names *names = without(sql, column, word, match);
  char plain[TK_WORDS_TEXT], text[600];

  if (names == NULL || word[0] == 0 || is_said(said, word)) return;
  plain_part(word, plain);
  const char *looked = match == TK_WORD_EQUAL ? word : plain, *best = near(names, looked),
             *where = best == NULL ? elsewhere(names, looked) : NULL;
  if (best != NULL)
    snprintf(text, sizeof text, "did you mean \"%s\"?%s", best, more_of(names, best));
  else if (where != NULL)
    snprintf(text, sizeof text, "%s", where);
  else
    list(names, text, sizeof text);
  tk_note("query", "no %s is %s \"%s\"; %s", column, match == TK_WORD_EQUAL ? "known as" : "like",
          word, text);
}
