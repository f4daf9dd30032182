/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/input.h"

enum { STACKS_MAX = 1 << 24 };

struct tk_pass {
  struct tk_input *in;
  struct to_span_pull *pull;
  struct tb_diag diag;
  const char *path;
  const struct to_generation *gen;
  uint64_t gen_number;
  bool has_clock, ended;
  struct to_clock clock;
  struct to_span *open; /* copies, once all has been read; their texts with them */
  struct to_span_more *open_more;
  size_t opens, opens_room, next_open;
};

static tb_rc more(void *self, const void **out_bytes, size_t *out_n) {
  const unsigned char *bytes;
  int got;

  do got = tk_input_next(self, &bytes, out_n);
  while (got == 1 && *out_n == 0);
  *out_bytes = bytes;
  return got == 1 ? TB_OK : got == 0 ? TB_END : TB_IO;
}

/* Spans of Ps and threads have no stacks: without them the others' stacks keep their numbers. */
static uint32_t wanted_for(uint32_t kinds) {
  uint32_t without_stacks = TO_WANT(PROC) | TO_WANT(THREAD);

  return TO_WANT_ALL & ~(without_stacks & ~kinds);
}

bool tk_pass_begin(const char *path, uint32_t kinds, struct tk_pass **out,
                   char error[TK_SOURCE_TEXT]) {
  const struct to_spans_config config = { .wanted = wanted_for(kinds), .stacks_max = STACKS_MAX };
  struct tk_pass *pass = calloc(1, sizeof *pass);

  snprintf(error, TK_SOURCE_TEXT, "out of memory");
  if (pass == NULL) return false;
  pass->path = path;
  tb_diag_clear(&pass->diag);
  if (!tk_input_open("query", path, &pass->in)) {
    error[0] = 0; /* it was said */
    free(pass);
    return false;
  }
  unsigned flags = tk_input_stays(pass->in) ? TO_READER_BYTES_STAY : 0;
  tb_rc rc = to_span_pull_new(&tk_mem, NULL, flags, &config,
                              (struct to_pull_source){ pass->in, more }, &pass->diag, &pass->pull);
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
    free((void *)(uintptr_t)pass->open_more[i].name.data);
    free((void *)(uintptr_t)pass->open_more[i].text.data);
  }
  free(pass->open);
  free(pass->open_more);
  to_span_pull_free(pass->pull);
  tk_input_close(pass->in);
  free(pass);
}

const struct to_callstack *tk_pass_stack(const struct tk_pass *pass, uint32_t number) {
  return to_spans_callstack(to_span_pull_spans(pass->pull), number);
}

static int fail(struct tk_pass *pass, tb_rc rc, char error[TK_SOURCE_TEXT]) {
  char why[300];

  tb_diag_format(&pass->diag, why, sizeof why);
  snprintf(error, TK_SOURCE_TEXT, "%s: %s", pass->path,
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

  if (pass->opens == pass->opens_room) {
    size_t room = pass->opens_room == 0 ? 256 : 2 * pass->opens_room;
    void *open = realloc(pass->open, room * sizeof *pass->open);
    if (open == NULL) return TB_NOMEM;
    pass->open = open;
    void *texts = realloc(pass->open_more, room * sizeof *pass->open_more);
    if (texts == NULL) return TB_NOMEM;
    pass->open_more = texts;
    pass->opens_room = room;
  }
  struct to_span_more *kept = &pass->open_more[pass->opens];
  pass->open[pass->opens] = *span;
  *kept = span->more == NULL ? (struct to_span_more){ .value = 0 } : *span->more;
  TB_TRY(copy_text(&kept->name));
  tb_rc rc = copy_text(&kept->text);
  if (rc != TB_OK) {
    free((void *)(uintptr_t)kept->name.data);
    return rc;
  }
  pass->opens++;
  return TB_OK;
}

static void set_generation(struct tk_pass *pass, const struct to_generation *gen) {
  pass->gen = gen;
  pass->gen_number = gen == NULL ? 0 : to_generation_number(gen);
  if (gen != NULL && to_generation_clock(gen, &pass->clock)) pass->has_clock = true;
}

/* Each span's stacks get their numbers in the same order in each pass. */
static tb_rc number_stacks(struct tk_pass *pass, struct tk_span *out) {
  struct to_spans *spans = to_span_pull_spans(pass->pull);

  TB_TRY(to_spans_stack(spans, pass->gen, out->span->stack, &out->stack));
  TB_TRY(to_spans_stack(spans, pass->gen, out->span->end_stack, &out->end_stack));
  return to_spans_stack(spans, pass->gen, out->span->by_stack, &out->by_stack);
}

static uint64_t wall_of(const struct tk_pass *pass, to_ns at) {
  uint64_t wall =
      (uint64_t)pass->clock.wall_s * UINT64_C(1000000000) + (uint64_t)pass->clock.wall_ns;

  return wall + (uint64_t)at - (uint64_t)pass->clock.trace_ns;
}

static int give(struct tk_pass *pass, const struct to_span *span, struct tk_span *out,
                char error[TK_SOURCE_TEXT]) {
  *out = (struct tk_span){ .span = span, .gen = pass->gen_number, .has_wall = pass->has_clock };
  if (pass->has_clock) out->wall_ns = wall_of(pass, span->from);
  tb_rc rc = number_stacks(pass, out);
  return rc == TB_OK ? 1 : fail(pass, rc, error);
}

static int give_open(struct tk_pass *pass, struct tk_span *out, char error[TK_SOURCE_TEXT]) {
  if (pass->next_open == pass->opens) return 0;
  struct to_span *span = &pass->open[pass->next_open];
  span->more = &pass->open_more[pass->next_open++];
  return give(pass, span, out, error);
}

int tk_pass_next(struct tk_pass *pass, struct tk_span *out, char error[TK_SOURCE_TEXT]) {
  const struct to_generation *gen;
  const struct to_span *span;

  if (pass->ended) return give_open(pass, out, error);
  tb_rc rc = to_span_pull_next(pass->pull, &span, &gen);
  if (rc == TB_OK) {
    if (gen != pass->gen || pass->gen_number == 0) set_generation(pass, gen);
    return give(pass, span, out, error);
  }
  if (rc != TB_END) return fail(pass, rc, error);
  pass->ended = true;
  set_generation(pass, NULL);
  rc = to_spans_open(to_span_pull_spans(pass->pull), keep_open, pass);
  return rc == TB_OK ? give_open(pass, out, error) : fail(pass, rc, error);
}

/* ---- goroutines and stacks */

void tk_source_init(struct tk_source *source, const char *path) {
  *source = (struct tk_source){ .path = path };
}

void tk_source_fini(struct tk_source *source) {
  for (size_t i = 0; i < source->lives; i++) free(source->goroutine[i].label);
  free(source->goroutine);
  to_span_pull_free(source->pull);
}

static struct tk_goroutine_row *row_of(struct tk_source *source, uint64_t life) {
  if (life >= source->room) {
    size_t room = source->room == 0 ? 1024 : source->room;
    while (room <= life) room *= 2;
    void *rows = realloc(source->goroutine, room * sizeof *source->goroutine);
    if (rows == NULL) return NULL;
    source->goroutine = rows;
    memset(source->goroutine + source->room, 0, (room - source->room) * sizeof *source->goroutine);
    source->room = room;
  }
  if (life >= source->lives) source->lives = life + 1;
  return &source->goroutine[life];
}

static bool set_life(struct tk_goroutine_row *row, const struct tk_span *at) {
  const struct to_span *span = at->span;

  row->created_known = span->from_known;
  row->created = span->from;
  row->ended = !span->open && span->until_known;
  row->ended_at = span->until;
  row->creator = span->by_life;
  row->creation_stack = at->end_stack;
  if (at->stack > TO_STACK_OTHER) {
    row->entry_stack = at->stack;
    row->entry_is_outermost = false;
  }
  if (span->more == NULL || span->more->name.len == 0) return true;
  free(row->label);
  row->label = calloc(1, span->more->name.len + 1);
  if (row->label == NULL) return false;
  memcpy(row->label, span->more->name.data, span->more->name.len);
  return true;
}

/* False: no memory. */
static bool note(struct tk_source *source, const struct tk_span *at) {
  const struct to_span *span = at->span;

  if (span->life == 0 || (span->kind != TO_SPAN_LIFE && span->kind != TO_SPAN_GOROUTINE))
    return true;
  struct tk_goroutine_row *row = row_of(source, span->life);
  if (row == NULL) return false;
  row->id = span->id;
  row->is_known = true;
  if (span->kind == TO_SPAN_LIFE) return set_life(row, at);
  uint32_t own = at->stack > TO_STACK_OTHER ? at->stack : at->end_stack;
  if (row->entry_stack == TO_STACK_EMPTY && own > TO_STACK_OTHER) {
    row->entry_stack = own;
    row->entry_is_outermost = true;
  }
  return true;
}

bool tk_source_read(struct tk_source *source, char error[TK_SOURCE_TEXT]) {
  struct tk_pass *pass;
  struct tk_span at;
  int got;

  if (source->was_read) return true;
  if (!tk_pass_begin(source->path, 0, &pass, error)) return false;
  while ((got = tk_pass_next(pass, &at, error)) == 1)
    if (!note(source, &at)) {
      snprintf(error, TK_SOURCE_TEXT, "out of memory");
      got = -1;
      break;
    }
  if (got == 0) {
    source->was_read = true;
    source->pull = pass->pull; /* the stacks stay */
    pass->pull = NULL;
    source->stacks = to_spans_stacks(to_span_pull_spans(source->pull));
  }
  tk_pass_end(pass);
  return got == 0;
}

const struct to_callstack *tk_source_stack(const struct tk_source *source, uint32_t number) {
  return to_spans_callstack(to_span_pull_spans(source->pull), number);
}
