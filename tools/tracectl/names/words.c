/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/words.h"

#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "online/analysis/analysis.h"
#include "online/event/view.h"
#include "online/spans/spans.h"
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

static bool has(const struct names *names, const char *word) {
  const char *known;

  for (unsigned i = 0; (known = names->at(i)) != NULL; i++)
    if (strcmp(known, word) == 0) return true;
  return false;
}

/* A wait's reason by what reports call it, or what it is about: "I/O wait", "mutex". */
static const char *reason_about(const char *word) {
  for (unsigned i = 1; i < TO_REASONS; i++)
    if (strcasecmp(to_reason_info((enum to_reason)i)->display, word) == 0)
      return to_reason_info((enum to_reason)i)->text;
  for (unsigned i = 1; i < TO_REASONS; i++)
    if (strcasestr(to_reason_info((enum to_reason)i)->about, word) != NULL)
      return to_reason_info((enum to_reason)i)->text;
  return NULL;
}

static const char *near(const struct names *names, const char *word) {
  struct tb_nearest nearest = { .word = word };
  const char *known, *part = NULL;

  for (unsigned i = 0; (known = names->at(i)) != NULL; i++) {
    tb_nearest_try(&nearest, known);
    if (part == NULL && strlen(word) > 1 && strcasestr(known, word) != NULL) part = known;
  }
  if (nearest.best != NULL) return nearest.best;
  if (part == NULL && names->at == span_reason) part = reason_about(word);
  return part;
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

void tk_words_check(struct tk_words_said *said, const char *table, const char *column,
                    const char *word) {
  const struct names *names = find(table, column);
  char text[600];

  if (names == NULL || word[0] == 0 || strlen(word) >= TK_WORDS_TEXT) return;
  if (has(names, word) || is_said(said, word)) return;
  const char *best = near(names, word);
  if (best != NULL)
    snprintf(text, sizeof text, "did you mean \"%s\"?", best);
  else
    list(names, text, sizeof text);
  tk_note("query", "no %s is known as \"%s\"; %s", column, word, text);
}
