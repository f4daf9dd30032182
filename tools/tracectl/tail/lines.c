/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/tracectl/tail/tail.h"
#include "tools/tracectl/term/tracectl.h"

void tk_lines_init(struct tk_lines *lines, bool json, uint64_t limit) {
  const char *no_color = getenv("NO_COLOR");

  pthread_mutex_init(&lines->lock, NULL);
  tk_out_init(&lines->out, STDOUT_FILENO);
  lines->limit = limit;
  lines->count = lines->lost = 0;
  lines->missing = false;
  lines->json = json;
  lines->bold = !json && isatty(STDOUT_FILENO) && (no_color == NULL || *no_color == '\0');
}

struct tk_out *tk_lines_begin(struct tk_lines *lines) {
  pthread_mutex_lock(&lines->lock);
  return &lines->out;
}

tb_rc tk_lines_end(struct tk_lines *lines) {
  tk_out_byte(&lines->out, '\n');
  bool last = ++lines->count == lines->limit;
  bool over = (lines->limit != 0 && lines->count > lines->limit) || lines->out.error != 0;
  /* the other part may still write: nothing may follow the last line */
  if (last) tk_out_flush(&lines->out);
  if (over) lines->out.len = 0;
  pthread_mutex_unlock(&lines->lock);
  return last || over ? TB_END : TB_OK;
}

void tk_lines_flush(struct tk_lines *lines) {
  pthread_mutex_lock(&lines->lock);
  tk_out_flush(&lines->out);
  pthread_mutex_unlock(&lines->lock);
}

void tk_lines_lost(struct tk_lines *lines, uint64_t n, const char *of) {
  if (n == 0) return;
  pthread_mutex_lock(&lines->lock);
  lines->lost += n;
  if (lines->json)
    tk_out_text(&lines->out, "{\"record\":\"lost\",\"lost\":");
  else
    tk_out_text(&lines->out, lines->bold ? "\033[1;31mlost " : "lost ");
  tk_out_u64(&lines->out, n);
  tk_out_text(&lines->out, lines->json ? ",\"of\":\"" : lines->bold ? "\033[m  " : "  ");
  tk_out_text(&lines->out, of); /* a topic needs no escapes */
  tk_out_text(&lines->out, lines->json ? "\"}\n" : "\n");
  pthread_mutex_unlock(&lines->lock);
}

void tk_lines_note(struct tk_lines *lines, bool missing, const char *fmt, ...) {
  va_list args;

  pthread_mutex_lock(&lines->lock);
  lines->missing = lines->missing || missing;
  tk_out_flush(&lines->out);
  va_start(args, fmt);
  tk_say("tail", fmt, args);
  va_end(args);
  pthread_mutex_unlock(&lines->lock);
}

void tk_lines_wall(struct tk_lines *lines, uint64_t wall_ns) {
  uint64_t second = wall_ns / 1000000000;
  char digits[] = ".000000Z";

  if (second != lines->second || lines->second_text[0] == '\0') {
    time_t at = (time_t)second;
    struct tm tm;
    lines->second = second;
    if (gmtime_r(&at, &tm) == NULL ||
        strftime(lines->second_text, sizeof lines->second_text, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
      strcpy(lines->second_text, "-");
  }
  unsigned micros = (unsigned)(wall_ns % 1000000000 / 1000);
  for (char *c = digits + 6; c > digits; c--, micros /= 10) *c = (char)('0' + micros % 10);
  tk_out_text(&lines->out, lines->second_text);
  tk_out_text(&lines->out, digits);
}

void tk_lines_bold(struct tk_lines *lines, const char *text) {
  if (lines->bold) tk_out_text(&lines->out, "\033[1m");
  tk_out_text(&lines->out, text);
  if (lines->bold) tk_out_text(&lines->out, "\033[m");
}
