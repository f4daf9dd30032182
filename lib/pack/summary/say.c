/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences, their commands, and the reports that they are of. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pack/summary/private.h"

enum { TEXT_BYTES = 512, TEXT_MOST = 230, COMMAND_BYTES = 1024 };

typedef Tracecollect__V1__Sentence sentence;

const Tracecollect__V1__Report *tp__report_of(const struct tp_summary_of *of,
                                              enum to_analysis_kind kind) {
  for (size_t i = 0; i < of->reports; i++)
    if (strcmp(of->report[i]->kind, to_analysis_name(kind)) == 0) return of->report[i]->report;
  return NULL;
}

uint64_t tp__length_of(const Tracecollect__V1__StreamReport *report) {
  if (report->time_ns > 0 && report->instances > 0) return report->time_ns / report->instances;
  return report->until_ns > report->from_ns ? (uint64_t)(report->until_ns - report->from_ns) : 0;
}

uint64_t tp__time_of(const struct tp_summary_of *of, enum to_analysis_kind kind) {
  for (size_t i = 0; i < of->reports; i++)
    if (strcmp(of->report[i]->kind, to_analysis_name(kind)) == 0)
      return tp__length_of(of->report[i]);
  return 0;
}

static tb_rc copy(struct tb_arena *arena, const char *text, char **out) {
  size_t n = strlen(text) + 1;
  void *bytes;

  TB_TRY(tb_arena_alloc(arena, n, &bytes));
  memcpy(bytes, text, n);
  *out = bytes;
  return TB_OK;
}

static bool needs_quotes(const char *word) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";

  return word[0] == '\0' || word[strspn(word, plain)] != '\0';
}

tb_rc tp_summary_quote(struct tb_arena *arena, const char *word, const char **out) {
  char *quoted, *to;

  *out = word;
  if (!needs_quotes(word)) return TB_OK;
  TB_TRY(tb_arena_alloc(arena, 4 * strlen(word) + 3, &quoted));
  to = quoted;
  *to++ = '\'';
  for (; *word != '\0'; word++) {
    if (*word == '\'') {
      memcpy(to, "'\\''", 4);
      to += 4;
    } else {
      *to++ = *word;
    }
  }
  memcpy(to, "'", 2);
  *out = quoted;
  return TB_OK;
}

/* Cuts a long sentence between two words. */
static void cut(char *text) {
  size_t n = strlen(text);

  if (n <= TEXT_MOST) return;
  for (n = TEXT_MOST - 4; n > TEXT_MOST / 2 && text[n] != ' ';) n--;
  memcpy(text + n, " ...", 5);
}

static tb_rc write_command(struct tp_summary *summary, const struct tp_summary_of *of,
                           const struct tp__draft *draft, char **out) {
  char command[COMMAND_BYTES] = "";

  if (draft->finding != NULL && draft->finding[0] != '\0')
    snprintf(command, sizeof command, "tracectl findings %s", draft->finding);
  else if (of->source[0] != '\0' && draft->is_why)
    snprintf(command, sizeof command, "tracectl why %s %s%s", of->source, draft->more, of->window);
  else if (of->source[0] != '\0')
    snprintf(command, sizeof command, "tracectl report %s %s%s%s", draft->report, of->source,
             draft->more != NULL ? draft->more : "", of->window);
  return copy(summary->arena, command, out);
}

tb_rc tp__say(struct tp_summary *summary, const struct tp_summary_of *of,
              const struct tp__draft *draft, const char *format, ...) {
  char text[TEXT_BYTES];
  sentence *s;
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  cut(text);
  TB_TRY(TB_ARENA_GROW(summary->arena, summary->sentence, summary->room, summary->n));
  TB_TRY(tb_arena_alloc(summary->arena, sizeof *s, &s));
  tracecollect__v1__sentence__init(s);
  s->open = draft->is_open;
  s->weight = (uint32_t)draft->weight;
  TB_TRY(copy(summary->arena, draft->kind, &s->kind));
  TB_TRY(copy(summary->arena, draft->report, &s->report));
  TB_TRY(copy(summary->arena, of->service, &s->service));
  TB_TRY(copy(summary->arena, text, &s->text));
  TB_TRY(copy(summary->arena, draft->place != NULL ? draft->place : "", &s->place));
  TB_TRY(copy(summary->arena, draft->finding != NULL ? draft->finding : "", &s->finding));
  TB_TRY(write_command(summary, of, draft, &s->more));
  summary->sentence[summary->n++] = s;
  return TB_OK;
}
