/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/csv.h"

#include <string.h>
#include <unistd.h>

#include "tools/tracectl/term/pen.h"
#include "tools/tracectl/term/plain.h"

enum { CELL_ROOM = 1 + TK_PEN_DECIMAL_MAX + TK_PEN_SLACK }; /* a comma and a number */

static bool is_plain(const char *text, size_t n) {
  bool plain = true;

  for (size_t i = 0; i < n; i++)
    plain &= text[i] != '"' && text[i] != ',' && text[i] != '\r' && text[i] != '\n';
  return plain;
}

static void put_text(FILE *out, const char *text, size_t n) {
  if (is_plain(text, n)) {
    fwrite(text, 1, n, out);
    return;
  }
  fputc('"', out);
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '"') fputc('"', out);
    fputc(text[i], out);
  }
  fputc('"', out);
}

void tk_csv_put(FILE *out, const char *text) {
  if (text != NULL) put_text(out, text, strlen(text));
}

static void flush(struct tk_csv_line *line) {
  fwrite_unlocked(line->text, 1, line->n, line->out);
  line->n = 0;
}

void tk_csv_begin(struct tk_csv_line *line, FILE *out) {
  line->out = out;
  line->n = 0;
  line->has_cells = false;
  line->is_on_terminal = isatty(fileno(out)) == 1;
}

/* Terminals are slow anyway: character by character. */
static void put_on_terminal(struct tk_csv_line *line, const char *text, size_t n) {
  bool plain;

  flush(line);
  fputc('"', line->out);
  for (size_t at = 0, len; at < n; at += len) {
    len = tk_plain_next(text + at, n - at, &plain);
    if (text[at] == '"') fputc('"', line->out);
    fwrite(plain ? text + at : "?", 1, plain ? len : 1, line->out);
  }
  fputc('"', line->out);
}

static bool is_obeyed(const char *text, size_t n) {
  bool plain = true;

  for (size_t at = 0; plain && at < n;) at += tk_plain_next(text + at, n - at, &plain);
  return !plain;
}

void tk_csv_none(struct tk_csv_line *line) {
  if (sizeof line->text - line->n < CELL_ROOM) flush(line);
  if (line->has_cells) line->text[line->n++] = ',';
  line->has_cells = true;
}

void tk_csv_number(struct tk_csv_line *line, int64_t number) {
  tk_csv_none(line);
  line->n = (size_t)(tk_pen_i64(line->text + line->n, number) - line->text);
}

void tk_csv_text(struct tk_csv_line *line, const char *text, size_t n) {
  tk_csv_none(line);
  n = strnlen(text, n);
  if (line->is_on_terminal && is_obeyed(text, n)) {
    put_on_terminal(line, text, n);
    return;
  }
  if (n + CELL_ROOM > sizeof line->text - line->n) flush(line);
  if (n + CELL_ROOM <= sizeof line->text && is_plain(text, n)) {
    memcpy(line->text + line->n, text, n);
    line->n += n;
    return;
  }
  flush(line);
  put_text(line->out, text, n);
}

void tk_csv_end(struct tk_csv_line *line) {
  if (sizeof line->text - line->n < CELL_ROOM) flush(line);
  memcpy(line->text + line->n, "\r\n", 2);
  line->n += 2;
  line->has_cells = false;
  flush(line);
}
