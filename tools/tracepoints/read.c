/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the lines of a source that begin with //trace:; others are ignored. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracepoints/points.h"

enum { CHUNK_BYTES = 64 << 10 };

void tk_points_init(struct tk_points *set) {
  memset(set, 0, sizeof *set);
  tb_arena_init(&set->arena, &tk_mem, CHUNK_BYTES);
  set->end = &set->first;
  set->imports_end = &set->imports;
  set->includes_end = &set->includes;
}

void tk_points_fini(struct tk_points *set) {
  tb_arena_fini(&set->arena);
}

void tk_points_fault(struct tk_points *set, const char *file, unsigned line, const char *fmt, ...) {
  va_list args;

  set->faults++;
  fprintf(stderr, "%s:%u: error: ", file, line);
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fputc('\n', stderr);
}

tb_rc tk_points_text(struct tk_points *set, const char *text, size_t len, const char **out) {
  void *copy;

  TB_TRY(tb_arena_alloc(&set->arena, len + 1, &copy));
  memcpy(copy, text, len);
  ((char *)copy)[len] = '\0';
  *out = copy;
  return TB_OK;
}

/* ---- words ---- */

struct words {
  struct tk_points *set;
  const char *at, *file, *module;
  unsigned line;
  const char *word; /* the last word taken */
  size_t len;       /* 0: no more words */
};

static bool is_name_byte(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static void next(struct words *w) {
  while (*w->at == ' ' || *w->at == '\t') w->at++;
  w->word = w->at;
  if (*w->at == '\0')
    w->len = 0;
  else if (!is_name_byte(*w->at))
    w->len = 1;
  else
    for (w->len = 1; is_name_byte(w->at[w->len]);) w->len++;
  w->at += w->len;
}

static bool is(const struct words *w, const char *text) {
  return w->len == strlen(text) && memcmp(w->word, text, w->len) == 0;
}

static bool is_name(const struct words *w) {
  return w->len > 0 && w->len <= TK_NAME_BYTES_MAX && is_name_byte(*w->word) &&
         !isdigit((unsigned char)*w->word);
}

static bool is_type_word(const struct words *w) {
  static const char *const words[] = { "void",   "char",   "short",    "int",     "long", "float",
                                       "double", "signed", "unsigned", "_Bool",   "bool", "const",
                                       "struct", "union",  "enum",     "volatile" };

  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (is(w, words[i])) return true;
  return false;
}

static void fault(const struct words *w, const char *what) {
  if (w->len > 0)
    tk_points_fault(w->set, w->file, w->line, "%s, not \"%.*s\"", what, (int)w->len, w->word);
  else
    tk_points_fault(w->set, w->file, w->line, "%s, and the line ends", what);
}

/* ---- parameters ---- */

/* Words joined in C's style: `const char *`. */
struct type {
  char text[4 * TK_NAME_BYTES_MAX];
  size_t len;
  unsigned words;
  bool cut;
};

static void add_to_type(struct type *type, const char *word, size_t len) {
  bool glued = type->len == 0 || (*word == '*' && type->text[type->len - 1] == '*');

  if (type->len + len + 2 > sizeof type->text) {
    type->cut = true;
    return;
  }
  if (!glued) type->text[type->len++] = ' ';
  memcpy(type->text + type->len, word, len);
  type->len += len;
  type->text[type->len] = '\0';
  type->words++;
}

static bool is_by_value(const struct type *type) {
  return strchr(type->text, '*') == NULL &&
         (strstr(type->text, "struct ") != NULL || strstr(type->text, "union ") != NULL);
}

static bool refuse_shape(const struct words *w) {
  static const struct {
    const char *word, *why;
  } shapes[] = {
    { "[", "an event's parameter cannot be an array: use a pointer" },
    { "(", "a pointer to a function needs a name of its own: give it one with typedef" },
    { ".", "an event takes a fixed number of arguments" },
    { "=", "a parameter has no default" },
  };

  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (is(w, shapes[i].word)) {
      tk_points_fault(w->set, w->file, w->line, "%s", shapes[i].why);
      return true;
    }
  return false;
}

/* Reads a parameter up to the following comma or bracket. The last word is its name. */
static tb_rc read_param(struct words *w, struct tk_point *point, bool *ok) {
  struct type type = { .len = 0 };
  struct words last = { .len = 0 };
  size_t before = 0;

  *ok = false;
  for (; w->len > 0 && !is(w, ",") && !is(w, ")"); next(w)) {
    if (refuse_shape(w)) return TB_OK;
    if (!is_name(w) && !is(w, "*")) {
      fault(w, "a parameter is a type and a name");
      return TB_OK;
    }
    before = type.len;
    last = *w;
    add_to_type(&type, w->word, w->len);
  }
  if (type.cut) {
    tk_points_fault(w->set, w->file, w->line, "parameter %u is too long", point->n + 1);
    return TB_OK;
  }
  if (type.words < 2 || is(&last, "*") || is_type_word(&last)) {
    tk_points_fault(w->set, w->file, w->line, "parameter %u needs a type and a name, and is \"%s\"",
                    point->n + 1, type.text);
    return TB_OK;
  }
  if (last.len > 3 && memcmp(last.word, "ta_", 3) == 0) {
    tk_points_fault(w->set, w->file, w->line,
                    "parameter \"%.*s\": names that begin with ta_ are ours", (int)last.len,
                    last.word);
    return TB_OK;
  }
  type.text[type.len = before] = '\0';
  if (is_by_value(&type)) {
    tk_points_fault(w->set, w->file, w->line, "\"%s %.*s\": hand a pointer, not the whole of it",
                    type.text, (int)last.len, last.word);
    return TB_OK;
  }
  if (point->n == TK_PARAMS_MAX) {
    tk_points_fault(w->set, w->file, w->line, "an event takes %d arguments at most", TK_PARAMS_MAX);
    return TB_OK;
  }
  *ok = true;
  struct tk_param *param = &point->param[point->n++];
  TB_TRY(tk_points_text(w->set, type.text, type.len, &param->type));
  return tk_points_text(w->set, last.word, last.len, &param->name);
}

/* Returns true for `(void)` and `()`. */
static bool are_none(const struct words *w) {
  struct words peek = *w;

  if (is(&peek, "void")) next(&peek);
  return is(&peek, ")");
}

static tb_rc read_params(struct words *w, struct tk_point *point, bool *ok) {
  if (are_none(w)) {
    if (is(w, "void")) next(w);
    *ok = true;
  } else {
    for (*ok = true; *ok;) {
      TB_TRY(read_param(w, point, ok));
      if (!is(w, ",")) break;
      next(w);
    }
  }
  if (!*ok) return TB_OK;
  if (!is(w, ")")) {
    fault(w, "a bracket closes the parameters");
    *ok = false;
  }
  return TB_OK;
}

/* ---- directives ---- */

static tb_rc read_event(struct words *w) {
  struct tk_point found = { .file = w->file, .line = w->line, .module = w->module };
  struct words name;
  void *block;
  bool ok;

  next(w);
  if (is(w, "scheduling")) {
    found.scheduling = true;
    next(w);
  }
  if (!is_name(w)) {
    fault(w, "an event has a name, as in //trace:event traceHello(const char *who)");
    return TB_OK;
  }
  name = *w;
  next(w);
  if (!is(w, "(")) {
    fault(w, "a bracket opens the parameters of an event");
    return TB_OK;
  }
  next(w);
  TB_TRY(read_params(w, &found, &ok));
  if (!ok) return TB_OK;
  next(w);
  if (is(w, ";")) next(w);
  if (w->len > 0) {
    fault(w, "an event ends with its parameters");
    return TB_OK;
  }
  TB_TRY(tk_points_text(w->set, name.word, name.len, &found.name));
  TB_TRY(tb_arena_alloc(&w->set->arena, sizeof found, &block));
  *w->set->end = memcpy(block, &found, sizeof found);
  w->set->end = &(*w->set->end)->next;
  return TB_OK;
}

static tb_rc want(struct words *w, struct tk_wanted ***end, const char *text, size_t len) {
  struct tk_wanted *wanted;

  TB_TRY(tb_arena_alloc(&w->set->arena, sizeof **end[0], &wanted));
  *wanted = (struct tk_wanted){ .file = w->file, .line = w->line };
  TB_TRY(tk_points_text(w->set, text, len, &wanted->what));
  **end = wanted;
  *end = &wanted->next;
  return TB_OK;
}

/* Returns the length of a text between two marks, including them; 0: not such a text. */
static size_t marked(const char *text, char open, char close) {
  const char *end = *text == open ? strchr(text + 1, close) : NULL;

  if (end == NULL || end == text + 1) return 0;
  return end[1 + strspn(end + 1, " \t")] == '\0' ? (size_t)(end - text) + 1 : 0;
}

static tb_rc read_import(struct words *w) {
  const char *text = w->at + strspn(w->at, " \t");
  size_t len = marked(text, '"', '"');
  bool fits = len > 2;

  for (size_t i = 1; i + 1 < len; i++) fits = fits && is_name_byte(text[i]);
  if (fits) return want(w, &w->set->imports_end, text + 1, len - 2);
  tk_points_fault(w->set, w->file, w->line,
                  "an import names a module in quotes, as in //trace:import \"hello\"");
  return TB_OK;
}

static tb_rc read_include(struct words *w) {
  const char *text = w->at + strspn(w->at, " \t");
  size_t len = marked(text, '"', '"');

  if (len == 0) len = marked(text, '<', '>');
  if (len > 0) return want(w, &w->set->includes_end, text, len);
  tk_points_fault(w->set, w->file, w->line,
                  "an include names a header, as in //trace:include \"job.h\"");
  return TB_OK;
}

static tb_rc read_module(struct words *w) {
  next(w);
  if (is_name(w)) return tk_points_text(w->set, w->word, w->len, &w->module);
  fault(w, "a module has a name");
  return TB_OK;
}

static tb_rc read_directive(struct words *w) {
  next(w);
  if (is(w, "event")) return read_event(w);
  if (is(w, "import")) return read_import(w);
  if (is(w, "include")) return read_include(w);
  if (is(w, "module")) return read_module(w);
  fault(w, "//trace: goes on with event, import or include");
  return TB_OK;
}

/* Returns the text after `//trace:`, or NULL for another line. */
static const char *directive(const char *line) {
  line += strspn(line, " \t");
  if (strncmp(line, "//", 2) != 0) return NULL;
  line += 2 + strspn(line + 2, " \t");
  return strncmp(line, "trace:", 6) == 0 ? line + 6 : NULL;
}

static tb_rc read_lines(struct words *w, FILE *file) {
  char *line = NULL;
  size_t room = 0;
  tb_rc rc = TB_OK;

  for (ssize_t n; rc == TB_OK && (n = getline(&line, &room, file)) >= 0;) {
    w->line++;
    line[strcspn(line, "\r\n")] = '\0';
    w->at = directive(line);
    if (w->at != NULL) rc = read_directive(w);
  }
  free(line);
  return rc;
}

tb_rc tk_points_read(struct tk_points *set, const char *path, const char *module,
                     struct tb_diag *diag) {
  struct words w = { .set = set, .module = module };
  FILE *file = fopen(path, "re");

  if (file == NULL) return tb_fail(diag, TB_IO, "%s: %s", path, strerror(errno));
  tb_rc rc = tk_points_text(set, path, strlen(path), &w.file);
  errno = 0;
  if (rc == TB_OK) rc = read_lines(&w, file);
  if (rc == TB_OK && ferror(file)) rc = tb_fail(diag, TB_IO, "%s: %s", path, strerror(errno));
  fclose(file);
  return rc;
}
