/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/state/print.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "online/spans/stacks/library.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/table.h"

typedef struct tk_moment_goroutine goroutine;

/* Returns the entry function: from the goroutine's creation, else the outermost frame of its
 * stack. */
static const struct to_frame *entry_of(const goroutine *g) {
  const struct to_frame *begins = to_callstack_entry(g->entry, true);

  return begins != NULL ? begins : to_callstack_entry(g->stack, false);
}

/* Returns "" if there is none. */
static const char *reason_of(const goroutine *g) {
  return g->state == TO_GO_WAITING && g->reason->text != NULL ? g->reason->text : "";
}

static void add_place(struct tk_table *t, const struct to_callstack *stack) {
  const struct to_frame *frame = to_callstack_own(stack);

  if (frame == NULL)
    tk_table_add(t, "-");
  else if (to_library_line(frame) == 0) /* a call that has no source in the trace */
    tk_table_add(t, "%.100s", frame->function.data);
  else
    tk_table_add(t, "%.100s:%" PRIu64, frame->function.data, frame->line);
}

static void add_row(struct tk_table *t, const struct tk_moment *m, const goroutine *g) {
  const struct to_frame *entry = entry_of(g);
  char age[TK_FORMAT_BYTES];

  tk_table_add(t, "%" PRId64, g->id);
  tk_table_add(t, "%.100s", entry == NULL ? "-" : entry->function.data);
  tk_table_add(t, "%s", tk_go_state_word(g->state));
  tk_table_add(t, "%s%s", g->since_known ? "" : ">",
               tk_format_ns((uint64_t)(m->at - g->since), age));
  tk_table_add(t, "%s", reason_of(g));
  add_place(t, g->stack);
  if (g->creator == TO_NONE || !g->created_known)
    tk_table_add(t, "-");
  else
    tk_table_add(t, "%" PRId64, g->creator);
  add_place(t, g->creation);
}

enum { WHO_BYTES = 16, HEAD_BYTES = 100 };

static void print_head(const struct tk_moment *m, const char *name) {
  static const struct {
    enum to_go_state state;
    const char *words;
  } states[] = { { TO_GO_RUNNING, "running" },
                 { TO_GO_RUNNABLE, "runnable" },
                 { TO_GO_WAITING, "waiting" },
                 { TO_GO_SYSCALL, "in system calls" } };
  char wall[TC_TIME_BYTES], who[WHO_BYTES];

  tk_put_plain(stdout, name);
  (void)to_words_write(to_spans_program(m->spans), m->n == 1 ? "goroutine" : "goroutines", who,
                       sizeof who);
  printf(": %zu %s at %" PRId64, m->n, who, m->at);
  if (m->has_wall) tc_time_format(m->wall_ns, wall);
  if (m->has_wall) printf(" (%s)", wall);
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    size_t n = 0;
    for (size_t k = 0; k < m->n; k++) n += m->goroutine[k].state == states[i].state;
    printf("%s %zu %s", i == 0 ? ":" : ",", n, states[i].words);
  }
  putchar('\n');
}

void tk_moment_print(const struct tk_moment *m, const char *name, size_t rows) {
  size_t n = rows == 0 || rows > m->n ? m->n : rows;
  char head[HEAD_BYTES];
  struct tk_table t;

  print_head(m, name);
  (void)to_words_write(to_spans_program(m->spans),
                       ">GOROUTINE,ENTRY,STATE,>FOR,REASON,PLACE,>CREATOR,CREATED AT", head,
                       sizeof head);
  tk_table_init(&t, head);
  for (size_t i = 0; i < n; i++) add_row(&t, m, &m->goroutine[i]);
  if (n > 0) tk_table_print(&t, stdout, false);
  tk_table_fini(&t);
  if (n < m->n) printf("and %zu more (--top 0: all)\n", m->n - n);
}

static json_t *text_of(const char *text, size_t len) {
  json_t *value = json_stringn(text, len);

  return value != NULL ? value : json_string("\xef\xbf\xbd"); /* not UTF-8 */
}

static json_t *id_of(int64_t id) {
  return id == TO_NONE ? json_null() : json_integer(id);
}

static json_t *frames_of(const struct to_callstack *stack) {
  json_t *list = json_array();

  for (size_t i = 0; stack != NULL && i < stack->len; i++) {
    const struct to_frame *f = stack->frames[i];
    json_array_append_new(
        list, json_pack("{s:o,s:o,s:I}", "function", text_of(f->function.data, f->function.len),
                        "file", text_of(f->file.data, f->file.len), "line", (json_int_t)f->line));
  }
  return list;
}

static json_t *object_of(const struct tk_moment *m, const char *name, const goroutine *g) {
  const struct to_frame *entry = entry_of(g);

  return json_pack(
      "{s:o,s:I,s:I,s:o,s:I,s:o,s:o,s:s,s:o,s:I,s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "stream",
      text_of(name, strlen(name)), "gen", (json_int_t)m->gen, "at_ns", (json_int_t)m->at, "wall_ns",
      m->has_wall ? json_integer((json_int_t)m->wall_ns) : json_null(), "goroutine",
      (json_int_t)g->id, "entry",
      entry == NULL ? json_null() : text_of(entry->function.data, entry->function.len), "label",
      g->label == NULL ? json_null() : text_of(g->label, strlen(g->label)), "state",
      tk_go_state_word(g->state), "reason", text_of(reason_of(g), strlen(reason_of(g))), "since_ns",
      (json_int_t)g->since, "since_known", g->since_known, "proc", id_of(g->proc), "thread",
      id_of(g->thread), "stack", frames_of(g->stack), "created_ns",
      g->created_known ? json_integer(g->created) : json_null(), "creator",
      g->created_known ? id_of(g->creator) : json_null(), "creation_stack", frames_of(g->creation));
}

bool tk_moment_print_json(const struct tk_moment *m, const char *name) {
  for (size_t i = 0; i < m->n; i++) {
    json_t *line = object_of(m, name, &m->goroutine[i]);
    if (line == NULL) return false;
    json_dumpf(line, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(line);
  }
  return true;
}
