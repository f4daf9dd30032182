/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/why/print.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

enum { FUNCTION_BYTES = 120, FILE_BYTES = 400, IN_WORDS = 3 };

static const struct {
  const char *id, *words; /* in JSON and tables; in the sentence, after a time */
} parts[TO_PATH_PARTS] = {
  [TO_PATH_CPU] = { "cpu", "its own CPU" },
  [TO_PATH_RUNNABLE] = { "runnable", "waiting for a P" },
  [TO_PATH_SYSCALL] = { "syscall", "in system calls" },
  [TO_PATH_ASSIST] = { "gc_assist", "helping the garbage collector" },
  [TO_PATH_STOPPED] = { "stop_the_world", "stop-the-world" },
  [TO_PATH_WAITING] = { "waiting", "waiting" },
  [TO_PATH_NOT_KNOWN] = { "unknown", "not known" },
};

static const struct to_frame *own_frame(const struct tk_why *why, uint32_t stack) {
  return to_callstack_own(tk_pass_stack(why->pass, stack));
}

static void copy_text(struct to_string text, char *out, size_t bytes) {
  size_t len = text.len < bytes ? text.len : bytes - 1;

  if (len > 0) memcpy(out, text.data, len);
  out[len] = 0;
  tk_plain_text(out);
}

static void copy_function(const struct to_frame *frame, char out[FUNCTION_BYTES]) {
  copy_text(frame == NULL ? (struct to_string){ 0 } : frame->function, out, FUNCTION_BYTES);
}

/* A goroutine begins in its LIFE's stack, else in the outermost frame of what is known of it. */
static void copy_entry_of(const struct tk_why *why, const struct to_history *history,
                          uint32_t stack, char out[FUNCTION_BYTES]) {
  const struct to_callstack *of = NULL;
  const struct to_frame *frame = NULL;

  if (history != NULL && history->entry_stack > TO_STACK_OTHER)
    of = tk_pass_stack(why->pass, history->entry_stack);
  if (of != NULL && of->len > 0) frame = of->frames[0];
  if (frame == NULL) of = tk_pass_stack(why->pass, stack);
  if (frame == NULL && of != NULL && of->len > 0) frame = of->frames[of->len - 1];
  copy_function(frame, out);
}

static void copy_entry(const struct tk_why *why, const struct to_path_piece *piece,
                       char out[FUNCTION_BYTES]) {
  copy_entry_of(why, piece->history, piece->stack, out);
}

static void copy_entry_of_related(const struct tk_why *why, const struct to_related_goroutine *of,
                                  char out[FUNCTION_BYTES]) {
  const struct to_history *history = of->history;

  copy_entry_of(why, history, history->n > 0 ? history->span[0].stack : TO_STACK_EMPTY, out);
}

static const char *reason_of(const struct to_path_piece *piece) {
  return piece->state == TO_GO_WAITING ? to_reason_info((enum to_reason)piece->reason)->display
                                       : "";
}

static const char *state_of(const struct to_path_piece *piece) {
  return piece->state == TO_GO_NOT_EXIST ? "unknown" : to_go_state_name(piece->state);
}

/* ---- the sentence ---- */

static enum to_path_part largest(const struct to_path_times *times) {
  unsigned best = 0;

  for (unsigned p = 1; p < TO_PATH_PARTS; p++)
    if (times->ns[p] > times->ns[best]) best = p;
  return (enum to_path_part)best;
}

static void say_behind(const struct tk_why *why, const struct to_path_behind *behind) {
  const struct to_path_piece *longest = &why->path.piece[behind->longest];
  char time[TK_FORMAT_BYTES], most[TK_FORMAT_BYTES], name[FUNCTION_BYTES], place[FUNCTION_BYTES];
  enum to_path_part part = largest(&behind->times);

  tk_format_ns(behind->times.total, time);
  if (behind->history == NULL) {
    printf("%s behind what the trace does not say", time);
    return;
  }
  copy_entry(why, longest, name);
  copy_function(own_frame(why, longest->stack), place);
  printf("%s behind goroutine %" PRId64 "%s%s", time, behind->history->goroutine,
         name[0] != 0 ? " " : "", name);
  printf(" (%s %s%s%s)", tk_format_ns(behind->times.ns[part], most), parts[part].words,
         place[0] != 0 ? ", at " : "", place);
}

static void say_sentence(const struct tk_why *why) {
  const struct tk_why_interval *in = why->interval;
  const struct to_path_sum *s = &why->sum;
  char time[TK_FORMAT_BYTES];
  const char *before = ": ";
  uint64_t rest = 0;

  printf("%s %s %s", in->name, in->open ? "is open, and so far took" : "took",
         tk_format_ns((uint64_t)(in->until - in->from), time));
  for (unsigned p = 0; p < TO_PATH_PARTS; p++) {
    if (s->own.ns[p] == 0) continue;
    printf("%s%s %s", before, tk_format_ns(s->own.ns[p], time), parts[p].words);
    if (p == TO_PATH_RUNNABLE && why->procs > 0)
      printf(" (%.1f runnable, %" PRIu32 " Ps)", why->runnable, why->procs);
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

/* ---- tables ---- */

static void add_part(struct tk_table *t, const char *part, const char *reason, uint64_t ns,
                     uint64_t of) {
  char time[TK_FORMAT_BYTES];

  if (ns == 0) return;
  tk_table_add(t, "%s", part);
  tk_table_add(t, "%s", reason);
  tk_table_add(t, "%s", tk_format_ns(ns, time));
  tk_table_add(t, "%.1f %%", 100.0 * (double)ns / (double)of);
}

/* each(self, part, reason, time): parts of the subject's own time, waits by reason, then what it was behind. */
typedef void part_fn(void *self, const char *part, const char *reason, uint64_t ns);

static void each_part(const struct to_path_sum *s, part_fn *each, void *self) {
  for (unsigned p = 0; p < TO_PATH_PARTS; p++)
    if (p != TO_PATH_WAITING && s->own.ns[p] > 0) each(self, parts[p].id, "", s->own.ns[p]);
  for (unsigned r = 0; r < TO_REASONS; r++)
    if (s->own_waiting[r] > 0)
      each(self, parts[TO_PATH_WAITING].id, to_reason_info((enum to_reason)r)->display,
           s->own_waiting[r]);
  if (s->behind_total > 0) each(self, "behind", "", s->behind_total);
}

struct part_rows {
  struct tk_table table;
  uint64_t of;
};

static void put_part_row(void *self, const char *part, const char *reason, uint64_t ns) {
  struct part_rows *rows = self;
  add_part(&rows->table, part, reason, ns, rows->of);
}

static void print_parts(const struct tk_why *why) {
  struct part_rows rows = { .of = (uint64_t)(why->interval->until - why->interval->from) };

  tk_table_init(&rows.table, "PART,REASON,>TIME,>SHARE");
  each_part(&why->sum, put_part_row, &rows);
  tk_table_print(&rows.table, stdout, false);
  tk_table_fini(&rows.table);
}

static void add_piece(struct tk_table *t, const struct tk_why *why, const struct to_path_piece *p) {
  char time[TK_FORMAT_BYTES], function[FUNCTION_BYTES];
  const struct to_frame *frame = own_frame(why, p->stack);

  tk_table_add(t, "%s", tk_format_ns((uint64_t)(p->from - why->interval->from), time));
  tk_table_add(t, "%s", tk_format_ns((uint64_t)(p->until - p->from), time));
  tk_table_add(t, "%" PRIu32, p->depth);
  tk_table_add(t, p->history == NULL ? "-" : "%" PRId64,
               p->history == NULL ? 0 : p->history->goroutine);
  tk_table_add(t, "%s", state_of(p));
  tk_table_add(t, "%s", reason_of(p));
  copy_function(frame, function);
  if (frame != NULL && frame->line > 0)
    tk_table_add(t, "%s:%" PRIu64, function, (uint64_t)frame->line);
  else
    tk_table_add(t, "%s", function);
  tk_table_add(t, "%s", to_path_end_name((enum to_path_end)p->end));
}

/* Those that it was behind in any way, whether or not the path goes through them. */
static void print_related(const struct tk_why *why) {
  size_t rows = why->ask->rows == 0 ? why->related.n : why->ask->rows;
  char name[FUNCTION_BYTES], time[TK_FORMAT_BYTES];
  struct tk_table t;

  if (why->related.n == 0) return;
  if (rows > why->related.n) rows = why->related.n;
  puts("");
  tk_table_init(&t, ">DEPTH,>GOROUTINE,ENTRY,>WAITS ENDED,>THEIR TIME");
  for (size_t i = 0; i < rows; i++) {
    const struct to_related_goroutine *of = &why->related.one[i];
    copy_entry_of_related(why, of, name);
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

static size_t rows_of(const struct tk_why *why) {
  size_t rows = why->ask->rows == 0 ? why->path.n : why->ask->rows;

  return rows < why->path.n ? rows : why->path.n;
}

static void print_path(const struct tk_why *why) {
  char time[TK_FORMAT_BYTES];
  size_t rows = rows_of(why);
  struct tk_table t;

  tk_table_init(&t, ">AFTER,>TIME,>DEPTH,>GOROUTINE,STATE,REASON,FUNCTION,NOT FOLLOWED");
  for (size_t i = 0; i < rows; i++) add_piece(&t, why, &why->path.piece[i]);
  tk_table_print(&t, stdout, false);
  tk_table_fini(&t);
  if (rows < why->path.n)
    printf("and %zu more, %s (--top 0: all)\n", why->path.n - rows,
           tk_format_ns((uint64_t)(why->interval->until - why->path.piece[rows].from), time));
}

/* ---- JSON ---- */

static void put_part_json(void *self, const char *part, const char *reason, uint64_t ns) {
  json_array_append_new(
      self, json_pack("{s:s,s:s,s:I}", "part", part, "reason", reason, "total_ns", (json_int_t)ns));
}

static json_t *behind_json(const struct tk_why *why) {
  json_t *rows = json_array();
  char entry[FUNCTION_BYTES], key[32];

  for (size_t i = 0; i < why->sum.n; i++) {
    const struct to_path_behind *b = &why->sum.behind[i];
    copy_entry(why, &why->path.piece[b->longest], entry);
    json_t *row = json_pack("{s:I,s:s,s:I}", "goroutine",
                            (json_int_t)(b->history == NULL ? 0 : b->history->goroutine), "entry",
                            entry, "total_ns", (json_int_t)b->times.total);
    for (unsigned p = 0; p < TO_PATH_PARTS; p++) {
      snprintf(key, sizeof key, "%s_ns", parts[p].id);
      json_object_set_new(row, key, json_integer((json_int_t)b->times.ns[p]));
    }
    json_array_append_new(rows, row);
  }
  return rows;
}

static json_t *related_json(const struct tk_why *why) {
  json_t *rows = json_array();
  char entry[FUNCTION_BYTES];

  for (size_t i = 0; i < why->related.n; i++) {
    const struct to_related_goroutine *of = &why->related.one[i];
    copy_entry_of_related(why, of, entry);
    json_array_append_new(rows, json_pack("{s:I,s:s,s:I,s:I,s:I,s:I}", "goroutine",
                                          (json_int_t)of->history->goroutine, "entry", entry,
                                          "life", (json_int_t)of->history->life, "depth",
                                          (json_int_t)of->depth, "wakes", (json_int_t)of->wakes,
                                          "waited_ns", (json_int_t)of->waited_ns));
  }
  return rows;
}

static json_t *path_json(const struct tk_why *why) {
  json_t *rows = json_array();
  char function[FUNCTION_BYTES], entry[FUNCTION_BYTES], file[FILE_BYTES];

  for (size_t i = 0; i < rows_of(why); i++) {
    const struct to_path_piece *p = &why->path.piece[i];
    const struct to_frame *frame = own_frame(why, p->stack);
    copy_function(frame, function);
    copy_entry(why, p, entry);
    copy_text(frame == NULL ? (struct to_string){ 0 } : frame->file, file, sizeof file);
    json_array_append_new(
        rows,
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:s}", "from_ns",
                  (json_int_t)p->from, "until_ns", (json_int_t)p->until, "total_ns",
                  (json_int_t)(p->until - p->from), "depth", (json_int_t)p->depth, "goroutine",
                  (json_int_t)(p->history == NULL ? 0 : p->history->goroutine), "life",
                  (json_int_t)(p->history == NULL ? 0 : p->history->life), "entry", entry, "state",
                  state_of(p), "reason", reason_of(p), "function", function, "file", file, "line",
                  (json_int_t)(frame == NULL ? 0 : frame->line), "stop_the_world_ns",
                  (json_int_t)p->stopped_ns, "gc_assist_ns", (json_int_t)p->assist_ns, "end",
                  to_path_end_name((enum to_path_end)p->end)));
  }
  return rows;
}

static int print_json(const struct tk_why *why) {
  const struct tk_why_interval *in = why->interval;
  json_t *part_rows = json_array();

  each_part(&why->sum, put_part_json, part_rows);
  json_t *line = json_pack(
      "{s:s,s:{s:s,s:I,s:I,s:I,s:I,s:b,s:b,s:I,s:f,s:I,s:b},s:{s:o,s:o,s:o,s:o}}", "kind", "why",
      "figures", "subject", in->name, "from_ns", (json_int_t)in->from, "until_ns",
      (json_int_t)in->until, "total_ns", (json_int_t)(in->until - in->from), "behind_ns",
      (json_int_t)why->sum.behind_total, "open", in->open, "cut", why->path.cut, "path_rows_total",
      (json_int_t)why->path.n, "runnable_mean", why->runnable, "procs", (json_int_t)why->procs,
      "related_cut", why->related.cut, "tables", "parts", part_rows, "behind", behind_json(why),
      "path", path_json(why), "related", related_json(why));
  if (line == NULL) return tk_fail("report", "out of memory");
  json_dumpf(line, stdout, JSON_COMPACT);
  putchar('\n');
  json_decref(line);
  return TK_DONE;
}

int tk_why_print(const struct tk_why *why) {
  if (why->ask->json) return print_json(why);
  say_sentence(why);
  puts("");
  print_parts(why);
  puts("");
  print_path(why);
  print_related(why);
  return TK_DONE;
}
