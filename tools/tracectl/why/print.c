/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/why/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "online/spans/stacks/library.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

enum { FUNCTION_BYTES = 120, IN_WORDS = 3 };

static void copy_text(struct to_string text, char *out, size_t bytes) {
  size_t len = text.len < bytes ? text.len : bytes - 1;

  if (len > 0) memcpy(out, text.data, len);
  out[len] = 0;
  tk_plain_text(out);
}

static void copy_function(const struct to_frame *frame, char out[FUNCTION_BYTES]) {
  copy_text(frame == NULL ? (struct to_string){ 0 } : frame->function, out, FUNCTION_BYTES);
}

static void copy_entry(const struct to_why *why, const struct to_path_piece *piece,
                       char out[FUNCTION_BYTES]) {
  copy_text(to_why_entry(why, piece->history, piece->stack), out, FUNCTION_BYTES);
}

/* Lends a text in the program's words, until the next call. */
static const char *in_words(const struct to_why *why, const char *text) {
  static char words[FUNCTION_BYTES];

  (void)to_words_write(to_spans_program(why->spans), text, words, sizeof words);
  return words;
}

static enum to_path_part largest(const struct to_path_times *times) {
  unsigned best = 0;

  for (unsigned p = 1; p < TO_PATH_PARTS; p++)
    if (times->ns[p] > times->ns[best]) best = p;
  return (enum to_path_part)best;
}

static void say_behind(const struct to_why *why, const struct to_path_behind *behind) {
  const struct to_path_piece *longest = &why->path.piece[behind->longest];
  char time[TK_FORMAT_BYTES], most[TK_FORMAT_BYTES], name[FUNCTION_BYTES], place[FUNCTION_BYTES];
  enum to_path_part part = largest(&behind->times);

  tk_format_ns(behind->times.total, time);
  if (behind->history == NULL) {
    printf("%s behind what the trace does not say", time);
    return;
  }
  copy_entry(why, longest, name);
  copy_function(to_why_frame(why, longest->stack), place);
  printf("%s %s %" PRId64 "%s%s", time, in_words(why, "behind goroutine"),
         behind->history->goroutine, name[0] != 0 ? " " : "", name);
  printf(" (%s %s%s%s)", tk_format_ns(behind->times.ns[part], most),
         in_words(why, to_why_part_words(part)), place[0] != 0 ? ", at " : "", place);
}

static void say_sentence(const struct to_why *why) {
  const struct to_why_interval *in = why->interval;
  const struct to_path_sum *s = &why->sum;
  char name[TO_WHY_NAME];
  char time[TK_FORMAT_BYTES];
  const char *before = ": ";
  uint64_t rest = 0;

  (void)to_words_write(to_spans_program(why->spans), in->name, name, sizeof name);
  tk_plain_text(name);
  printf("%s %s %s", name, in->open ? "is open, and so far took" : "took",
         tk_format_ns((uint64_t)(in->until - in->from), time));
  for (unsigned p = 0; p < TO_PATH_PARTS; p++) {
    if (s->own.ns[p] == 0) continue;
    printf("%s%s %s", before, tk_format_ns(s->own.ns[p], time),
           in_words(why, to_why_part_words((enum to_path_part)p)));
    if (p == TO_PATH_RUNNABLE && why->procs > 0)
      printf(" (%.1f runnable, %" PRIu32 " %s)", why->runnable, why->procs, in_words(why, "Ps"));
    before = ", ";
  }
  for (size_t i = 0; i < s->n; i++) {
    if (i >= IN_WORDS) {
      rest += s->behind[i].times.total;
      continue;
    }
    fputs(before, stdout);
    before = ", ";
    say_behind(why, &s->behind[i]);
  }
  if (rest > 0) printf(", %s behind %zu others", tk_format_ns(rest, time), s->n - IN_WORDS);
  puts("");
}

struct part_rows {
  struct tk_table table;
  uint64_t of;
};

static void put_part_row(void *self, const char *part, const char *reason, uint64_t ns) {
  struct part_rows *rows = self;
  char time[TK_FORMAT_BYTES];

  tk_table_add(&rows->table, "%s", part);
  tk_table_add(&rows->table, "%s", reason);
  tk_table_add(&rows->table, "%s", tk_format_ns(ns, time));
  tk_table_add(&rows->table, "%.1f %%", 100.0 * (double)ns / (double)rows->of);
}

static void print_parts(const struct to_why *why) {
  struct part_rows rows = { .of = (uint64_t)(why->interval->until - why->interval->from) };

  tk_table_init(&rows.table, "PART,REASON,>TIME,>SHARE");
  to_why_each_part(why, put_part_row, &rows);
  tk_table_print(&rows.table, stdout, false);
  tk_table_fini(&rows.table);
}

static void add_piece(struct tk_table *t, const struct to_why *why, const struct to_path_piece *p) {
  char time[TK_FORMAT_BYTES], function[FUNCTION_BYTES];
  const struct to_frame *frame = to_why_frame(why, p->stack);

  tk_table_add(t, "%s", tk_format_ns((uint64_t)(p->from - why->interval->from), time));
  tk_table_add(t, "%s", tk_format_ns((uint64_t)(p->until - p->from), time));
  tk_table_add(t, "%" PRIu32, p->depth);
  tk_table_add(t, p->history == NULL ? "-" : "%" PRId64,
               p->history == NULL ? 0 : p->history->goroutine);
  tk_table_add(t, "%s", to_why_piece_state(p));
  tk_table_add(t, "%s", to_why_piece_reason(why, p));
  copy_function(frame, function);
  if (frame != NULL && to_library_line(frame) > 0)
    tk_table_add(t, "%s:%" PRIu64, function, (uint64_t)frame->line);
  else
    tk_table_add(t, "%s", function);
  tk_table_add(t, "%s", in_words(why, to_why_piece_end(why, p)));
}

static size_t rows_of(const struct tk_why_ask *ask, size_t all) {
  return ask->rows == 0 || ask->rows > all ? all : ask->rows;
}

/* Prints everything that it waited for, on the path or not. */
static void print_related(const struct tk_why_ask *ask, const struct to_why *why) {
  size_t rows = rows_of(ask, why->related.n);
  char name[FUNCTION_BYTES], time[TK_FORMAT_BYTES];
  struct tk_table t;

  if (why->related.n == 0) return;
  puts("");
  tk_table_init(&t, in_words(why, ">DEPTH,>GOROUTINE,ENTRY,>WAITS ENDED,>THEIR TIME"));
  for (size_t i = 0; i < rows; i++) {
    const struct to_related_goroutine *of = &why->related.one[i];
    copy_text(to_why_related_entry(why, of), name, sizeof name);
    tk_table_add(&t, "%" PRIu32, of->depth);
    tk_table_add(&t, "%" PRId64, of->history->goroutine);
    tk_table_add(&t, "%s", name);
    tk_table_add(&t, "%" PRIu64, of->wakes);
    tk_table_add(&t, "%s", tk_format_ns(of->waited_ns, time));
  }
  tk_table_print(&t, stdout, false);
  tk_table_fini(&t);
  if (rows < why->related.n) printf("and %zu more (--top 0: all)\n", why->related.n - rows);
}

static void print_path(const struct tk_why_ask *ask, const struct to_why *why) {
  char time[TK_FORMAT_BYTES];
  size_t rows = rows_of(ask, why->path.n);
  struct tk_table t;

  tk_table_init(&t,
                in_words(why, ">AFTER,>TIME,>DEPTH,>GOROUTINE,STATE,REASON,FUNCTION,NOT FOLLOWED"));
  for (size_t i = 0; i < rows; i++) add_piece(&t, why, &why->path.piece[i]);
  tk_table_print(&t, stdout, false);
  tk_table_fini(&t);
  if (rows < why->path.n)
    printf("and %zu more, %s (--top 0: all)\n", why->path.n - rows,
           tk_format_ns((uint64_t)(why->interval->until - why->path.piece[rows].from), time));
}

static int print_json(const struct tk_why_ask *ask, const struct to_why *why) {
  struct tb_buf line;

  tb_buf_init(&line, &tk_mem);
  tb_buf_text(&line, "{\"kind\":\"why\",");
  to_why_json(why, ask->rows, &line);
  tb_buf_text(&line, "}\n");
  bool is_whole = line.rc == TB_OK;
  if (is_whole) fwrite(line.data, 1, line.len, stdout);
  tb_buf_fini(&line);
  return is_whole ? TK_DONE : tk_fail("why", "out of memory");
}

int tk_why_print(const struct tk_why_ask *ask, const struct to_why *why) {
  if (ask->json) return print_json(ask, why);
  say_sentence(why);
  puts("");
  print_parts(why);
  puts("");
  print_path(ask, why);
  print_related(ask, why);
  return TK_DONE;
}
