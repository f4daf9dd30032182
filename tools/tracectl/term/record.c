/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/record.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/term/pen.h"

/* Returns the text as JSON, in memory that the caller frees; NULL: it cannot be allocated. */
static char *json_text(const char *text, size_t n) {
  json_t *value = json_stringn(text, n);

  if (value == NULL) value = json_string("\xef\xbf\xbd"); /* not UTF-8 */
  char *escaped = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
  json_decref(value);
  return escaped;
}

static char *key_of(const char *name, bool is_first) {
  char *escaped = json_text(name, strlen(name));
  size_t room = escaped == NULL ? 0 : strlen(escaped) + 3;
  char *key = escaped == NULL ? NULL : malloc(room);

  if (key != NULL) snprintf(key, room, "%c%s:", is_first ? '{' : ',', escaped);
  free(escaped);
  return key;
}

bool tk_record_init(struct tk_record *r, enum tk_record_format format, FILE *out,
                    const char *const *name, size_t columns) {
  *r = (struct tk_record){ .format = format, .columns = columns };
  tk_csv_begin(&r->line, out);
  if (format == TK_RECORD_CSV) return true;
  r->key = calloc(columns + 1, sizeof *r->key);
  for (size_t i = 0; r->key != NULL && i < columns; i++)
    if ((r->key[i] = key_of(name[i], i == 0)) == NULL) break;
  if (r->key != NULL && (columns == 0 || r->key[columns - 1] != NULL)) return true;
  tk_record_fini(r);
  return false;
}

void tk_record_fini(struct tk_record *r) {
  for (size_t i = 0; r->key != NULL && i < r->columns; i++) free(r->key[i]);
  free(r->key);
  r->key = NULL;
}

void tk_record_head(struct tk_record *r, const char *const *name) {
  if (r->format == TK_RECORD_JSON) return;
  for (size_t i = 0; i < r->columns; i++) tk_csv_text(&r->line, name[i], strlen(name[i]));
  tk_csv_end(&r->line);
}

/* ---- JSON ---- */

static void put(struct tk_csv_line *line, const char *text, size_t n) {
  if (n > sizeof line->text - line->n) {
    fwrite_unlocked(line->text, 1, line->n, line->out);
    line->n = 0;
  }
  if (n > sizeof line->text) {
    fwrite_unlocked(text, 1, n, line->out);
    return;
  }
  memcpy(line->text + line->n, text, n);
  line->n += n;
}

static void put_key(struct tk_record *r) {
  const char *key = r->key[r->column++];

  put(&r->line, key, strlen(key));
}

static bool is_plain(const char *text, size_t n) {
  bool plain = true;

  for (size_t i = 0; i < n; i++)
    plain &= text[i] >= ' ' && text[i] < 0x7f && text[i] != '"' && text[i] != '\\';
  return plain;
}

static void put_text(struct tk_csv_line *line, const char *text, size_t n) {
  if (is_plain(text, n)) {
    put(line, "\"", 1);
    put(line, text, n);
    put(line, "\"", 1);
    return;
  }
  char *escaped = json_text(text, n);
  if (escaped != NULL)
    put(line, escaped, strlen(escaped));
  else
    put(line, "null", 4);
  free(escaped);
}

static void put_real(struct tk_csv_line *line, double real) {
  char text[40];
  json_t *value = isfinite(real) ? json_real(real) : NULL;
  size_t n = value == NULL ? 0 : json_dumpb(value, text, sizeof text, JSON_ENCODE_ANY);

  json_decref(value);
  if (n > 0 && n <= sizeof text)
    put(line, text, n);
  else
    put(line, "null", 4);
}

/* ---- values ---- */

void tk_record_number(struct tk_record *r, int64_t number) {
  char text[TK_PEN_DECIMAL_MAX + TK_PEN_SLACK];

  if (r->format == TK_RECORD_CSV) {
    tk_csv_number(&r->line, number);
    return;
  }
  put_key(r);
  put(&r->line, text, (size_t)(tk_pen_i64(text, number) - text));
}

void tk_record_real(struct tk_record *r, double real) {
  put_key(r);
  put_real(&r->line, real);
}

void tk_record_text(struct tk_record *r, const char *text, size_t n) {
  if (r->format == TK_RECORD_CSV) {
    tk_csv_text(&r->line, text, n);
    return;
  }
  put_key(r);
  put_text(&r->line, text, n);
}

void tk_record_none(struct tk_record *r) {
  if (r->format == TK_RECORD_CSV) {
    tk_csv_none(&r->line);
    return;
  }
  put_key(r);
  put(&r->line, "null", 4);
}

void tk_record_end(struct tk_record *r) {
  if (r->format == TK_RECORD_CSV) {
    tk_csv_end(&r->line);
    return;
  }
  put(&r->line, r->column == 0 ? "{}\n" : "}\n", r->column == 0 ? 3 : 2);
  fwrite_unlocked(r->line.text, 1, r->line.n, r->line.out);
  r->line.n = 0;
  r->column = 0;
}
