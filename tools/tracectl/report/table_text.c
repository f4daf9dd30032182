/* SPDX-License-Identifier: Apache-2.0 */
/* A slot is a column of text: a column of the table, or a part of a distribution. First the slots are chosen, from
 * the fullest choice to the smallest until they fit the page; then the rows are printed. */
#include "tools/tracectl/report/table_text.h"

#include <stdio.h>
#include <string.h>

#include "tools/tracectl/report/cell.h"
#include "tools/tracectl/report/frame_text.h"
#include "tools/tracectl/report/text.h"
#include "tools/tracectl/term/plain.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__Frame Frame;
typedef const struct tk_report_style Style;

enum {
  SLOTS_MAX = 64,
  GAP = 2,
  TEXT_MAX = 36,
  TIME_MIN = 7,    /* "9.99 ms"; columns keep their places while figures change */
  STACK_MIN = 40,  /* minimum for a stack beside its row */
  STACK_BELOW = 8, /* indentation of a stack or sentence below its row */
  SENTENCE_MIN = 72,
};

#define PART(name) (1U << TK_PART_##name)

/* Parts of each distribution, fullest choice first. */
static const unsigned with_quantiles[] = {
  PART(COUNT) | PART(TOTAL) | PART(MEAN) | PART(P50) | PART(P90) | PART(P99) | PART(MAX),
  PART(COUNT) | PART(TOTAL) | PART(P50) | PART(P90) | PART(P99) | PART(MAX),
  PART(COUNT) | PART(TOTAL) | PART(P50) | PART(P99) | PART(MAX),
  PART(COUNT) | PART(TOTAL) | PART(P99) | PART(MAX),
  PART(COUNT) | PART(TOTAL) | PART(MAX),
  PART(COUNT) | PART(TOTAL),
};
static const unsigned without_quantiles[] = {
  PART(COUNT) | PART(TOTAL) | PART(MEAN) | PART(MAX),
  PART(COUNT) | PART(TOTAL) | PART(MAX),
  PART(COUNT) | PART(TOTAL),
};
enum { CHOICES_FULL = 6, CHOICES_SPARE = 3, WITHOUT_MAX = 1 /* choices at the end */ };

struct slot {
  size_t column;
  enum tk_part part;
  size_t width;
  bool left; /* aligned */
};

struct layout {
  const StreamReport *report;
  const struct tp_table *table;
  Style *style;
  struct slot slot[SLOTS_MAX];
  size_t slots, left_out; /* left_out: slots for which there is no room */
  size_t width;           /* of all slots, with the gaps after them */
  size_t stacks;          /* columns */
  size_t label;           /* width of the stacks' names, if there are several */
  bool below;             /* stacks are below their row */
  /* By column and part: the slot's width, which is the same in each choice; 0: not measured. */
  size_t known_width[SLOTS_MAX][TK_PARTS];
};

/* ---- small pieces ---- */

static const FieldSchema *field_of(const struct layout *l, size_t column) {
  return l->table->schema->columns[column];
}

static bool is_stack(const struct layout *l, size_t column) {
  return field_of(l, column)->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK;
}

/* Columns of sentences are printed below their rows. */
static bool is_sentence(const struct layout *l, size_t column) {
  if (field_of(l, column)->type != TRACECOLLECT__V1__VALUE_TYPE__VALUE_TEXT) return false;
  for (size_t i = 0; i < l->table->table->n_rows; i++) {
    const char *text = tp_row_text(l->table->table->rows[i], column);
    if (strlen(text) >= SENTENCE_MIN && strchr(text, ' ') != NULL) return true;
  }
  return false;
}

static bool has_one_distribution(const struct layout *l) {
  size_t n = 0;

  for (size_t c = 0; c < l->table->schema->n_columns; c++)
    n += field_of(l, c)->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
  return n == 1;
}

/* If there are several distributions, each one's first number has its name. */
static void head_text(const struct layout *l, const struct slot *slot, char out[TK_CELL_BYTES]) {
  bool is_named = slot->part == TK_PART_COUNT && !has_one_distribution(l);

  if (slot->part == TK_PART_WHOLE || is_named)
    tk_cell_name(field_of(l, slot->column), out);
  else
    snprintf(out, TK_CELL_BYTES, "%s", tk_part_name(slot->part));
}

/* Where the row of the rest has its name: in the first slot, else among the stacks. */
static bool is_named(const struct layout *l) {
  return l->slots > 0 && l->slot[0].column < l->table->schema->keys;
}

static void row_text(const struct layout *l, const struct slot *slot, const Row *row,
                     char out[TK_CELL_BYTES]) {
  const FieldSchema *field = field_of(l, slot->column);

  tk_cell_text(l->report, field, tp_row_value(row, slot->column), slot->part, out);
  if (row->other && slot == l->slot && is_named(l))
    snprintf(out, TK_CELL_BYTES, "(others)");
  else if (out[0] == '\0' && slot->left && slot->column < l->table->schema->keys && !row->other)
    snprintf(out, TK_CELL_BYTES, "(unknown)");
  if (field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_FLAG && strcmp(out, "no") == 0)
    out[0] = '\0';
}

/* Writes text of a traced program, made printable and cut to width characters. Returns the number written. */
static size_t put_cut(FILE *out, const char *text, size_t width) {
  const char *end = text + strlen(text);
  size_t shown = 0, len;
  bool plain;

  for (; text < end && shown < width; text += len, shown++) {
    len = tk_plain_next(text, (size_t)(end - text), &plain);
    if (shown + 1 == width && text + len < end)
      fputc('~', out);
    else if (plain)
      fwrite(text, 1, len, out);
    else
      fputc('?', out);
  }
  return shown;
}

/* ---- layout ---- */

static bool has_value(const struct layout *l, size_t column) {
  bool is_flag = field_of(l, column)->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_FLAG;

  for (size_t i = 0; i < l->table->table->n_rows; i++) {
    const Value *value = tp_row_value(l->table->table->rows[i], column);
    if (value == NULL || value->is_case == TRACECOLLECT__V1__VALUE__IS__NOT_SET) continue;
    if (!is_flag || tp_value_number(value) != 0) return true;
  }
  return false;
}

static bool has_quantiles(const struct layout *l) {
  for (size_t i = 0; i < l->table->table->n_rows; i++)
    for (size_t c = 0; c < l->table->schema->n_columns; c++) {
      const Distribution *d = tp_row_distribution(l->table->table->rows[i], c);
      if (d != NULL && !d->no_quantiles) return true;
    }
  return false;
}

static size_t measure(const struct layout *l, const struct slot *slot) {
  char text[TK_CELL_BYTES];

  head_text(l, slot, text);
  size_t most = tk_cell_width(text);
  if (slot->part > TK_PART_COUNT && most < TIME_MIN) most = TIME_MIN;
  for (size_t i = 0; i < l->table->table->n_rows; i++) {
    row_text(l, slot, l->table->table->rows[i], text);
    size_t width = tk_cell_width(text);
    if (width > most) most = width;
  }
  return slot->left && most > TEXT_MAX ? TEXT_MAX : most;
}

static void add_slot(struct layout *l, size_t column, enum tk_part part) {
  if (l->slots == SLOTS_MAX) {
    l->left_out++;
    return;
  }
  struct slot *slot = &l->slot[l->slots++];
  *slot = (struct slot){ .column = column, .part = part };
  slot->left = field_of(l, column)->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_TEXT;
  size_t spare = 0, *known = column < SLOTS_MAX ? &l->known_width[column][part] : &spare;
  if (*known == 0) *known = measure(l, slot);
  slot->width = *known;
  l->width += slot->width + GAP;
}

static void choose_slots(struct layout *l, unsigned parts) {
  l->slots = l->left_out = l->width = l->stacks = l->label = 0;
  for (size_t c = 0; c < l->table->schema->n_columns; c++) {
    if (!has_value(l, c)) continue;
    if (is_stack(l, c)) {
      char name[TK_CELL_BYTES];
      tk_cell_name(field_of(l, c), name);
      size_t width = tk_cell_width(name) < TEXT_MAX ? tk_cell_width(name) : TEXT_MAX;
      if (width + GAP > l->label) l->label = width + GAP;
      l->stacks++;
    } else if (is_sentence(l, c)) {
      continue;
    } else if (field_of(l, c)->type != TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION) {
      add_slot(l, c, TK_PART_WHOLE);
    } else {
      for (unsigned part = 1; part < TK_PARTS; part++)
        if (parts & 1U << part) add_slot(l, c, (enum tk_part)part);
    }
  }
  if (l->stacks < 2) l->label = 0;
}

static bool fits(const struct layout *l) {
  size_t room = l->stacks > 0 && !l->below ? STACK_MIN + l->label + GAP : 0;
  return l->width + room <= l->style->columns + GAP;
}

/* Puts stacks beside their rows, unless that leaves too little room for a distribution's maximum. */
static void lay_out(struct layout *l) {
  bool full = has_quantiles(l);
  const unsigned *choice = full ? with_quantiles : without_quantiles;
  unsigned choices = full ? CHOICES_FULL : CHOICES_SPARE;

  l->below = false;
  for (unsigned i = 0; i + WITHOUT_MAX < choices; i++) {
    choose_slots(l, choice[i]);
    if (fits(l)) return;
  }
  l->below = true;
  for (unsigned i = 0; i < choices; i++) {
    choose_slots(l, choice[i]);
    if (fits(l)) return;
  }
  while (l->slots > 1 && !fits(l)) {
    l->left_out++;
    l->width -= l->slot[--l->slots].width + GAP;
  }
}

/* ---- stacks ---- */

/* Notes what the program's own frame called; at another place, what the goroutine began with. */
static void note_frame(const struct layout *l, const Value *stack, size_t own, enum to_code code,
                       char out[TK_CELL_BYTES]) {
  const Tracecollect__V1__Report *r = l->table->report;
  size_t end = tp_stack_length(r, stack) - 1;
  bool is_program = code == TO_CODE_PROGRAM;
  const Frame *other = tp_stack_frame(r, stack, !is_program ? end : own > 0 ? own - 1 : 0);

  out[0] = '\0';
  if (other != NULL && (is_program ? own > 0 : end > own))
    tk_frame_note(is_program ? "in" : "from", other, out, TK_CELL_BYTES);
}

/* A note that does not fit takes the place of the file, if it says where the goroutine began; else it is left out. */
static void put_frame(const struct layout *l, const Frame *frame, const char *note, size_t width) {
  char line[TK_CELL_BYTES];

  tk_frame_text(frame, line, sizeof line);
  if (tk_cell_width(line) + tk_cell_width(note) > width) {
    char *file = strstr(note, "(from ") != NULL ? strstr(line, "  ") : NULL;
    if (file == NULL) note = "";
    if (file != NULL) *file = '\0';
  }
  size_t used = put_cut(l->style->out, line, width);
  if (used < width) put_cut(l->style->out, note, width - used);
  fputc('\n', l->style->out);
}

/* Begins at the cursor, which is at this column, and ends the line. */
static void put_stack(const struct layout *l, size_t column, const Value *stack) {
  const Tracecollect__V1__Report *r = l->table->report;
  size_t width = l->style->columns > column + 20 ? l->style->columns - column : 20;
  size_t n = tp_stack_length(r, stack), shown = 0, frames = l->style->frames;
  size_t own = frames > 0 ? tk_frame_find_own(r, stack) : 0;
  const Frame *first = tp_stack_frame(r, stack, own);
  enum to_code code = first != NULL && frames > 0 ? tk_frame_code(first) : TO_CODE_PLUMBING;
  enum to_code least = code < TO_CODE_MODULE ? code : TO_CODE_MODULE;
  char note[TK_CELL_BYTES] = "";

  if (n == 0) fputs("(stack unknown)\n", l->style->out);
  if (n > 0 && frames > 0) note_frame(l, stack, own, code, note);
  for (size_t i = own; i < n && (frames == 0 || shown < frames); i++) {
    const Frame *frame = tp_stack_frame(r, stack, i);
    if (frame == NULL || tk_frame_code(frame) < least) continue;
    if (shown++ > 0) fprintf(l->style->out, "%*s", (int)column, "");
    put_frame(l, frame, i == own ? note : "", width);
  }
  if (n > own + shown && frames > 1)
    fprintf(l->style->out, "%*s+%zu more\n", (int)column, "", n - own - shown);
}

/* Writes the stack's name, if a row has several. */
static void put_label(const struct layout *l, size_t column) {
  char name[TK_CELL_BYTES];

  tk_cell_name(field_of(l, column), name);
  size_t width = put_cut(l->style->out, name, l->label - GAP);
  fprintf(l->style->out, "%*s", (int)(l->label - width), "");
}

/* Ends the row's line. */
static void put_stacks(const struct layout *l, const Row *row) {
  size_t column = l->below ? STACK_BELOW : l->width, put = 0;

  if (l->below) fprintf(l->style->out, "\n%*s", STACK_BELOW, "");
  if (row->other) {
    fputs("(all others)\n", l->style->out);
    return;
  }
  for (size_t c = 0; c < l->table->schema->n_columns; c++) {
    const Value *stack = tp_row_value(row, c);
    if (!is_stack(l, c) || !has_value(l, c)) continue;
    if (l->label > 0 && (stack == NULL || stack->is_case == TRACECOLLECT__V1__VALUE__IS__NOT_SET))
      continue; /* for example a preempted goroutine, which has no waker */
    if (put++ > 0) fprintf(l->style->out, "%*s", (int)column, "");
    if (l->label > 0) put_label(l, c);
    put_stack(l, column + l->label, stack);
  }
  if (put == 0) fputs("(stack unknown)\n", l->style->out);
}

/* ---- rows ---- */

/* Writes pending blanks before the text, so that lines have none at their end. *blanks: pending ones. */
static void put_cell(FILE *out, const struct slot *slot, const char *text, size_t *blanks) {
  size_t width = tk_cell_width(text), pad = slot->width > width ? slot->width - width : 0;

  if (width == 0) {
    *blanks += slot->width + GAP;
    return;
  }
  fprintf(out, "%*s", (int)(*blanks + (slot->left ? 0 : pad)), "");
  put_cut(out, text, slot->width);
  *blanks = (slot->left ? pad : 0) + GAP;
}

static void put_head(const struct layout *l) {
  char text[TK_CELL_BYTES];
  size_t blanks = 0;

  if (l->style->bold) fputs("\033[1m", l->style->out);
  for (size_t i = 0; i < l->slots; i++) {
    head_text(l, &l->slot[i], text);
    put_cell(l->style->out, &l->slot[i], text, &blanks);
  }
  if (l->stacks > 0 && !l->below) fprintf(l->style->out, "%*sstack", (int)blanks, "");
  fprintf(l->style->out, "%s\n", l->style->bold ? "\033[0m" : "");
}

static void put_sentences(const struct layout *l, const Row *row) {
  for (size_t c = 0; c < l->table->schema->n_columns; c++) {
    const char *text = tp_row_text(row, c);
    if (!is_sentence(l, c) || text[0] == '\0') continue;
    fprintf(l->style->out, "%*s", STACK_BELOW, "");
    tk_words_print(text, STACK_BELOW, l->style);
  }
}

static void put_row(const struct layout *l, const Row *row) {
  bool is_alone =
      l->stacks == 0 || (row->other && is_named(l)); /* no stack, and no text in its place */
  char text[TK_CELL_BYTES];
  size_t blanks = 0;

  for (size_t i = 0; i < l->slots; i++) {
    row_text(l, &l->slot[i], row, text);
    put_cell(l->style->out, &l->slot[i], text, &blanks);
  }
  if (!is_alone && !l->below) fprintf(l->style->out, "%*s", (int)blanks, "");
  if (is_alone)
    fputc('\n', l->style->out);
  else
    put_stacks(l, row);
  put_sentences(l, row);
}

void tk_table_rows_print(const StreamReport *report, const struct tp_table *table, Style *style) {
  struct layout l = { .report = report, .table = table, .style = style };
  char note[TK_CELL_BYTES];

  lay_out(&l);
  put_head(&l);
  for (size_t i = 0; i < table->table->n_rows; i++) put_row(&l, table->table->rows[i]);
  if (l.left_out == 0) return;
  snprintf(note, sizeof(note), "%zu more column%s hidden: widen the terminal or use --json.",
           l.left_out, l.left_out == 1 ? " is" : "s are");
  tk_words_print(note, 0, style);
}
