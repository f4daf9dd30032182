/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "online/spans/stacks/idle.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/trace_range.h"

/* A span that is open at the end: a copy with its texts. */
struct open {
  struct to_span span;
  struct to_span_more more;
};

struct tk_pass {
  struct tk_input *in;
  struct to_span_pull *pull;
  struct tb_diag diag;
  const struct tk_place *place;
  const struct to_generation *gen;
  uint64_t gen_number;
  bool has_clock, ended, has_start;
  to_ns start;  /* of the first generation */
  tb_rc failed; /* the trace is broken: open spans are returned before the error */
  struct to_clock clock;
  struct open *open; /* filled at the end */
  size_t opens, opens_room, next_open;
  struct to_idle idle; /* made when it is first asked */
};

tb_rc tk_input_more(void *self, const void **out_bytes, size_t *out_n) {
  const unsigned char *bytes;
  int got;

  do got = tk_input_next(self, &bytes, out_n);
  while (got == 1 && *out_n == 0);
  *out_bytes = bytes;
  return got == 1 ? TB_OK : got == 0 ? TB_END : TB_IO;
}

/* Spans of Ps and threads have no stacks; the other stacks keep their numbers without them. */
static uint32_t wanted_for(uint32_t kinds) {
  uint32_t without_stacks = TO_WANT(PROC) | TO_WANT(THREAD);

  return TO_WANT_ALL & ~(without_stacks & ~kinds);
}

bool tk_pass_begin(const struct tk_place *place, uint32_t kinds, struct tk_pass **out,
                   char error[TK_QUERY_ERROR]) {
  const struct to_spans_config config = { .wanted = wanted_for(kinds),
                                          .stacks_max = TK_QUERY_STACKS_MAX };
  struct tk_pass *pass = calloc(1, sizeof *pass);

  snprintf(error, TK_QUERY_ERROR, "out of memory");
  if (pass == NULL) return false;
  pass->place = place;
  tb_diag_clear(&pass->diag);
  if (!tk_input_open(place->verb, place->path, &pass->in)) {
    error[0] = 0; /* already reported */
    free(pass);
    return false;
  }
  tk_input_part(pass->in, &place->part);
  unsigned flags = tk_input_stays(pass->in) ? TO_READER_BYTES_STAY : 0;
  tb_rc rc = to_span_pull_new(&tk_mem, NULL, flags, &config,
                              (struct to_pull_source){ pass->in, tk_input_more }, &pass->diag,
                              &pass->pull);
  if (rc == TB_OK) {
    *out = pass;
    return true;
  }
  tk_pass_end(pass);
  return false;
}

void tk_pass_end(struct tk_pass *pass) {
  if (pass == NULL) return;
  for (size_t i = 0; i < pass->opens; i++) {
    free((void *)(uintptr_t)pass->open[i].more.name.data);
    free((void *)(uintptr_t)pass->open[i].more.text.data);
  }
  free(pass->open);
  to_idle_fini(&pass->idle);
  to_span_pull_free(pass->pull);
  tk_input_close(pass->in);
  free(pass);
}

const struct to_spans *tk_pass_spans(const struct tk_pass *pass) {
  return to_span_pull_spans(pass->pull);
}

const struct to_callstack *tk_pass_stack(const struct tk_pass *pass, uint32_t number) {
  return to_spans_callstack(to_span_pull_spans(pass->pull), number);
}

uint32_t tk_pass_stacks(const struct tk_pass *pass) {
  return to_spans_stacks(to_span_pull_spans(pass->pull));
}

to_ns tk_pass_start(const struct tk_pass *pass) {
  return pass->start;
}

/* Finds the function that the span's goroutine began with: the outermost frame of its first stack. */
static tb_rc find_entry(struct tk_pass *pass, const struct to_span *span, struct to_string *out) {
  uint64_t begin = to_span_pull_begin_stack(pass->pull, span);
  uint32_t number;

  *out = (struct to_string){ "", 0 };
  if (begin == 0) return TB_OK;
  TB_TRY(to_spans_stack(to_span_pull_spans(pass->pull), pass->gen, begin, &number));
  const struct to_callstack *stack = tk_pass_stack(pass, number);
  if (stack != NULL && stack->len > 0) *out = stack->frames[stack->len - 1]->function;
  return TB_OK;
}

tb_rc tk_pass_is_idle(struct tk_pass *pass, const struct tk_span *at, bool *out) {
  const struct to_spans *spans = to_span_pull_spans(pass->pull);
  const struct to_span *span = at->span;
  bool is_call = span->state == TO_GO_SYSCALL;

  *out = false;
  if (span->kind != TO_SPAN_GOROUTINE || (span->state != TO_GO_WAITING && !is_call)) return TB_OK;
  if (pass->idle.mem == NULL)
    TB_TRY(to_idle_init(&pass->idle, &tk_mem, to_spans_stack_table(spans), to_spans_reasons(spans),
                        pass->place->idle));
  if (is_call) return to_idle_ask(&pass->idle, at->stack, TO_IDLE_CALL, out);
  struct to_string entry = { 0 };
  if (to_idle_needs_entry(&pass->idle, at->stack)) TB_TRY(find_entry(pass, span, &entry));
  return to_idle_ask_in(&pass->idle, at->stack, span->reason, entry, out);
}

static int fail(struct tk_pass *pass, tb_rc rc, char error[TK_QUERY_ERROR]) {
  char why[300];

  if (pass->diag.offset != TB_NO_OFFSET)
    pass->diag.offset = tk_input_offset(pass->in, pass->diag.offset);
  tb_diag_format(&pass->diag, why, sizeof why);
  snprintf(error, TK_QUERY_ERROR, "%s: %s", pass->place->name,
           pass->diag.rc != TB_OK ? why : tb_rc_text(rc));
  return -1;
}

static tb_rc copy_text(struct to_string *text) {
  char *copy = text->len == 0 ? NULL : malloc(text->len);

  if (text->len > 0 && copy == NULL) return TB_NOMEM;
  if (text->len > 0) memcpy(copy, text->data, text->len);
  text->data = copy;
  return TB_OK;
}

static tb_rc keep_open(void *self, const struct to_span *span) {
  struct tk_pass *pass = self;

  TB_TRY(TB_GROW(pass->open, pass->opens_room, pass->opens));
  struct open *open = &pass->open[pass->opens];
  *open = (struct open){ .span = *span };
  if (span->more != NULL) open->more = *span->more;
  TB_TRY(copy_text(&open->more.name));
  tb_rc rc = copy_text(&open->more.text);
  if (rc != TB_OK) {
    free((void *)(uintptr_t)open->more.name.data);
    return rc;
  }
  pass->opens++;
  return TB_OK;
}

static int compare(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

/* Sorted by begin; equal begins have a fixed order. */
static int compare_open(const void *a, const void *b) {
  const struct to_span *one = &((const struct open *)a)->span,
                       *other = &((const struct open *)b)->span;
  int by_from = compare(one->from, other->from), by_kind = compare(one->kind, other->kind);

  if (by_from != 0) return by_from;
  return by_kind != 0 ? by_kind : compare(one->id, other->id);
}

static tb_rc find_open(struct tk_pass *pass) {
  TB_TRY(to_spans_open(to_span_pull_spans(pass->pull), keep_open, pass));
  if (pass->opens > 0) qsort(pass->open, pass->opens, sizeof *pass->open, compare_open);
  return TB_OK;
}

/* A new generation may have the address of an old one: compare numbers. */
static void set_generation(struct tk_pass *pass, const struct to_generation *gen) {
  uint64_t number = gen == NULL ? 0 : to_generation_number(gen);

  pass->gen = gen;
  if (number == pass->gen_number) return;
  if (pass->gen_number == 0 && gen != NULL && !pass->has_start) {
    pass->start = to_generation_start(gen);
    pass->has_start = true;
  }
  pass->gen_number = number;
  if (gen != NULL && to_generation_clock(gen, &pass->clock)) pass->has_clock = true;
}

/* Numbers a span's stacks in a fixed order, so that each pass has the same numbers. */
static tb_rc number_stacks(struct tk_pass *pass, struct tk_span *out) {
  struct to_spans *spans = to_span_pull_spans(pass->pull);

  TB_TRY(to_spans_stack(spans, pass->gen, out->span->stack, &out->stack));
  TB_TRY(to_spans_stack(spans, pass->gen, out->span->end_stack, &out->end_stack));
  return to_spans_stack(spans, pass->gen, out->span->by_stack, &out->by_stack);
}

const char *tk_go_state_word(unsigned state) {
  static const char *const words[] = { "undetermined", "notexist", "runnable",
                                       "running",      "waiting",  "syscall" };

  return words[state];
}

const char *tk_thread_state_word(unsigned state) {
  static const char *const words[] = { "idle", "running", "syscall", "blocked" };

  return words[state];
}

static int return_span(struct tk_pass *pass, const struct to_span *span, struct tk_span *out,
                       char error[TK_QUERY_ERROR]) {
  *out = (struct tk_span){ .span = span, .gen = pass->gen_number, .has_wall = pass->has_clock };
  out->reason = to_spans_reason(to_span_pull_spans(pass->pull), span->reason);
  if (pass->has_clock) out->wall_ns = tk_wall_of(&pass->clock, span->from);
  tb_rc rc = number_stacks(pass, out);
  return rc == TB_OK ? 1 : fail(pass, rc, error);
}

/* Returns open spans, then the trace's fault. */
static int return_open(struct tk_pass *pass, struct tk_span *out, char error[TK_QUERY_ERROR]) {
  if (pass->next_open == pass->opens)
    return pass->failed == TB_OK ? 0 : fail(pass, pass->failed, error);
  struct open *open = &pass->open[pass->next_open++];
  open->span.more = &open->more;
  return return_span(pass, &open->span, out, error);
}

void tk_note_misannotated(const struct tk_place *place, struct tk_input *in,
                          const struct tb_diag *wrong) {
  static const struct tk_place *noted;
  struct tb_diag diag;
  char why[300];

  if (wrong == NULL || noted == place) return;
  noted = place;
  diag = *wrong;
  if (diag.offset != TB_NO_OFFSET) diag.offset = tk_input_offset(in, diag.offset);
  tb_diag_format(&diag, why, sizeof why);
  tk_note(place->verb, "%s: %s; the regions of that goroutine end there", place->name, why);
}

int tk_pass_next(struct tk_pass *pass, struct tk_span *out, char error[TK_QUERY_ERROR]) {
  const struct to_generation *gen;
  const struct to_span *span;

  if (pass->ended) return return_open(pass, out, error);
  tb_rc rc = to_span_pull_next(pass->pull, &span, &gen);
  if (rc == TB_OK) {
    set_generation(pass, gen);
    return return_span(pass, span, out, error);
  }
  pass->failed = rc == TB_END ? TB_OK : rc;
  if (rc == TB_END)
    tk_note_misannotated(pass->place, pass->in, to_span_pull_misannotated(pass->pull));
  pass->ended = true;
  set_generation(pass, NULL);
  rc = find_open(pass);
  return rc == TB_OK ? return_open(pass, out, error) : fail(pass, rc, error);
}
