/* SPDX-License-Identifier: Apache-2.0 */
#include "online/words/words.h"

#include <string.h>

#include "wire/mark.h"

struct row {
  const char *go, *c;
  size_t go_len;
};

static const struct row rows[] = {
#define TO_COLUMN(go, c)
#define TO_WORDS(go, c) { go, c, sizeof(go) - 1 },
#include "online/words/words.def"
#undef TO_WORDS
#undef TO_COLUMN
};
static const struct row columns[] = {
#define TO_COLUMN(go, c) { go, c, sizeof(go) - 1 },
#define TO_WORDS(go, c)
#include "online/words/words.def"
#undef TO_WORDS
#undef TO_COLUMN
};
enum { ROWS = sizeof rows / sizeof *rows, COLUMNS = sizeof columns / sizeof *columns };

enum to_program to_program_of(const struct to_generation *gen) {
  static const char mark[] = TW_C_MARK;
  struct to_string text;
  bool has = gen != NULL && to_generation_string(gen, TW_C_MARK_STRING, &text);

  return has && text.len == sizeof mark - 1 && memcmp(text.data, mark, text.len) == 0
             ? TO_PROGRAM_C
             : TO_PROGRAM_GO;
}

static bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns the longest row at the begin of text; NULL: none. */
static const struct row *find_row(const char *text) {
  const struct row *best = NULL;

  for (size_t i = 0; i < ROWS; i++) {
    const struct row *row = &rows[i];
    if (row->go[0] != text[0] || (best != NULL && best->go_len >= row->go_len)) continue;
    if (strncmp(row->go, text, row->go_len) != 0) continue;
    if (is_of_word(row->go[row->go_len - 1]) && is_of_word(text[row->go_len])) continue;
    best = row;
  }
  return best;
}

struct writing {
  char *out;
  size_t bytes, len;
};

static void put(struct writing *w, const char *text, size_t n) {
  for (size_t i = 0; i < n; i++, w->len++)
    if (w->len + 1 < w->bytes) w->out[w->len] = text[i];
}

size_t to_words_write(enum to_program program, const char *text, char *out, size_t bytes) {
  struct writing w = { out, bytes, 0 };
  bool in_word = false;

  while (*text != '\0') {
    const struct row *row = program == TO_PROGRAM_GO || in_word ? NULL : find_row(text);
    if (row != NULL) {
      put(&w, row->c, strlen(row->c));
      text += row->go_len;
      continue;
    }
    in_word = is_of_word(*text);
    put(&w, text++, 1);
  }
  if (bytes > 0) out[w.len < bytes ? w.len : bytes - 1] = '\0';
  return w.len;
}

size_t to_words_column(enum to_program program, const char *name, char *out, size_t bytes) {
  struct writing w = { out, bytes, 0 };

  for (size_t i = 0; i < COLUMNS && program != TO_PROGRAM_GO; i++) {
    if (strcmp(columns[i].go, name) != 0) continue;
    put(&w, columns[i].c, strlen(columns[i].c));
    if (bytes > 0) out[w.len < bytes ? w.len : bytes - 1] = '\0';
    return w.len;
  }
  return to_words_write(program, name, out, bytes);
}

bool to_words_row(size_t i, struct to_words_row *out) {
  const struct row *row = i < COLUMNS          ? &columns[i]
                          : i - COLUMNS < ROWS ? &rows[i - COLUMNS]
                                               : NULL;

  if (row != NULL)
    *out = (struct to_words_row){ .go = row->go, .c = row->c, .is_column = i < COLUMNS };
  return row != NULL;
}
