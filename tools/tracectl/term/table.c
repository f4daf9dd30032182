/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/table.h"

#include "base/grow.h"
#include "tools/tracectl/term/plain.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void add_cell(struct tk_table *t, char *text) {
  if (TB_GROW(t->cell, t->room, t->cells) != TB_OK) {
    free(text);
    return;
  }
  t->cell[t->cells++] = text;
}

void tk_table_init(struct tk_table *t, const char *head) {
  *t = (struct tk_table){ 0 };
  while (t->columns < TK_COLUMNS_MAX) {
    size_t n = strcspn(head, ",");
    bool right = *head == '>';
    t->right[t->columns++] = right;
    add_cell(t, strndup(head + right, n - right));
    if (head[n] == '\0') return;
    head += n + 1;
  }
}

void tk_table_fini(struct tk_table *t) {
  for (size_t i = 0; i < t->cells; i++) free(t->cell[i]);
  free(t->cell);
  *t = (struct tk_table){ 0 };
}

void tk_table_add(struct tk_table *t, const char *fmt, ...) {
  char *text;
  va_list args;

  va_start(args, fmt);
  if (vasprintf(&text, fmt, args) < 0) text = NULL;
  va_end(args);
  if (text != NULL) tk_plain_text(text);
  add_cell(t, text);
}

static const char *cell_at(const struct tk_table *t, size_t row, size_t column) {
  const char *text = t->cell[row * t->columns + column];

  return text != NULL ? text : "";
}

/* Counts characters: continuation bytes of UTF-8 have no width. */
static size_t width_of(const char *text) {
  size_t n = 0;

  for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
  return n;
}

static void print_markdown(const struct tk_table *t, FILE *out, size_t rows) {
  for (size_t row = 0; row < rows; row++) {
    for (size_t c = 0; c < t->columns; c++) {
      fputs("| ", out);
      for (const char *p = cell_at(t, row, c); *p != '\0'; p++) {
        if (*p == '|') fputc('\\', out);
        fputc(*p, out);
      }
      fputc(' ', out);
    }
    fputs("|\n", out);
    if (row != 0) continue;
    for (size_t c = 0; c < t->columns; c++) fputs(t->right[c] ? "|---:" : "|---", out);
    fputs("|\n", out);
  }
}

void tk_table_print(const struct tk_table *t, FILE *out, bool markdown) {
  size_t rows = t->cells / t->columns, width[TK_COLUMNS_MAX] = { 0 };

  if (markdown) {
    print_markdown(t, out, rows);
    return;
  }
  for (size_t row = 0; row < rows; row++)
    for (size_t c = 0; c < t->columns; c++)
      if (width_of(cell_at(t, row, c)) > width[c]) width[c] = width_of(cell_at(t, row, c));
  for (size_t row = 0; row < rows; row++)
    for (size_t c = 0; c < t->columns; c++) {
      const char *text = cell_at(t, row, c);
      int pad = (int)(width[c] - width_of(text));
      bool last = c + 1 == t->columns;
      if (t->right[c])
        fprintf(out, "%*s%s", pad, "", text);
      else
        fprintf(out, "%s%*s", text, last ? 0 : pad, "");
      fputs(last ? "\n" : "  ", out);
    }
}

void tk_size_format(uint64_t bytes, char out[TK_SIZE_BYTES]) {
  static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  double value = (double)bytes / 1024;
  size_t unit = 0;

  if (bytes < 1024) {
    snprintf(out, TK_SIZE_BYTES, "%u B", (unsigned)bytes);
    return;
  }
  while (value >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]) {
    value /= 1024;
    unit++;
  }
  snprintf(out, TK_SIZE_BYTES, "%.1f %s", value, units[unit]);
}
