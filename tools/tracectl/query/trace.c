/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/seed.h"
#include "tools/tracectl/term/tracectl.h"

void tk_trace_init(struct tk_trace *trace, const struct tk_place *place, size_t number) {
  *trace = (struct tk_trace){ .place = *place, .number = number };
  to_stack_table_init(&trace->stacks, &tk_mem, TK_QUERY_STACKS_MAX, NULL);
  tb_map_init(&trace->by_stack_number, &tk_mem, tb_seed());
}

void tk_trace_fini(struct tk_trace *trace) {
  for (size_t i = 0; i < trace->lives; i++) free(trace->goroutine[i].label);
  free(trace->goroutine);
  free(trace->by_id);
  free(trace->stack_number);
  tb_map_fini(&trace->by_stack_number);
  to_stack_table_fini(&trace->stacks);
}

const struct to_callstack *tk_trace_stack(const struct tk_trace *trace, uint32_t number) {
  return to_stack_table_stack(&trace->stacks, number);
}

void tk_numbers_fini(struct tk_numbers *numbers) {
  free(numbers->of);
  *numbers = (struct tk_numbers){ 0 };
}

static bool make_room(struct tk_numbers *numbers, uint32_t number) {
  size_t room = numbers->room == 0 ? 256 : numbers->room;

  if (number < numbers->room) return true;
  while (room <= number) room *= 2;
  uint32_t *of = realloc(numbers->of, room * sizeof *of);
  if (of == NULL) return false;
  memset(of + numbers->room, 0, (room - numbers->room) * sizeof *of);
  numbers->of = of;
  numbers->room = room;
  return true;
}

tb_rc tk_numbers_find(struct tk_numbers *numbers, struct tk_trace *trace, uint32_t number,
                      const struct to_callstack *stack, uint32_t *out) {
  *out = number;
  if (number <= TO_STACK_OTHER) return TB_OK;
  if (!make_room(numbers, number)) return TB_NOMEM;
  if (numbers->of[number] == TO_STACK_EMPTY)
    TB_TRY(to_stack_table_copy(&trace->stacks, stack, &numbers->of[number]));
  *out = numbers->of[number];
  return TB_OK;
}

static struct tk_goroutine_row *row_of(struct tk_trace *trace, uint64_t life) {
  if (life >= trace->room) {
    size_t room = trace->room == 0 ? 1024 : trace->room;
    while (room <= life) room *= 2;
    void *rows = realloc(trace->goroutine, room * sizeof *trace->goroutine);
    if (rows == NULL) return NULL;
    trace->goroutine = rows;
    memset(trace->goroutine + trace->room, 0, (room - trace->room) * sizeof *trace->goroutine);
    trace->room = room;
  }
  if (life >= trace->lives) trace->lives = life + 1;
  return &trace->goroutine[life];
}

static tb_rc set_label(struct tk_goroutine_row *row, const struct to_span *span) {
  if (span->more == NULL || span->more->name.len == 0) return TB_OK;
  free(row->label);
  row->label =
      calloc(1, span->more->name.len + 1); /* not NUL-terminated: strndup() stops at its length */
  if (row->label == NULL) return TB_NOMEM;
  memcpy(row->label, span->more->name.data, span->more->name.len);
  return TB_OK;
}

struct reading {
  struct tk_trace *trace;
  struct tk_pass *pass;
  struct tk_numbers numbers;
};

static tb_rc number_of(struct reading *r, uint32_t stack, uint32_t *out) {
  return tk_numbers_find(&r->numbers, r->trace, stack, tk_pass_stack(r->pass, stack), out);
}

static tb_rc set_life(struct reading *r, struct tk_goroutine_row *row, const struct tk_span *at) {
  const struct to_span *span = at->span;

  row->created_known = span->from_known;
  row->created = span->from;
  row->ended = !span->open && span->until_known;
  row->ended_at = span->until;
  row->creator = span->by_life;
  TB_TRY(number_of(r, at->end_stack, &row->creation_stack));
  if (at->stack > TO_STACK_OTHER) {
    TB_TRY(number_of(r, at->stack, &row->entry_stack));
    row->entry_is_outermost = false;
  }
  return set_label(row, span);
}

static tb_rc take_span(struct reading *r, const struct tk_span *at) {
  const struct to_span *span = at->span;

  if (span->life == 0 || (span->kind != TO_SPAN_LIFE && span->kind != TO_SPAN_GOROUTINE))
    return TB_OK;
  struct tk_goroutine_row *row = row_of(r->trace, span->life);
  if (row == NULL) return TB_NOMEM;
  row->id = span->id;
  row->is_known = true;
  if (span->kind == TO_SPAN_LIFE) return set_life(r, row, at);
  uint32_t own = at->stack > TO_STACK_OTHER ? at->stack : at->end_stack;
  if (row->entry_stack != TO_STACK_EMPTY || own <= TO_STACK_OTHER) return TB_OK;
  row->entry_is_outermost = true;
  return number_of(r, own, &row->entry_stack);
}

/* Takes late names of frames, and stacks that are not in a goroutine's row. */
static tb_rc take_stacks(struct reading *r) {
  uint32_t number;

  for (uint32_t i = TO_STACK_OTHER + 1; i < tk_pass_stacks(r->pass); i++)
    TB_TRY(to_stack_table_copy(&r->trace->stacks, tk_pass_stack(r->pass, i), &number));
  return TB_OK;
}

bool tk_trace_read(struct tk_trace *trace, char error[TK_QUERY_ERROR]) {
  struct reading r = { .trace = trace };
  struct tk_span at;
  tb_rc rc = TB_OK;
  int got = 0;

  if (trace->was_read) return true;
  if (!tk_pass_begin(&trace->place, 0, &r.pass, error)) return false;
  while (rc == TB_OK && (got = tk_pass_next(r.pass, &at, error)) == 1) rc = take_span(&r, &at);
  if (rc == TB_OK && got == 0) rc = take_stacks(&r);
  if (rc != TB_OK) snprintf(error, TK_QUERY_ERROR, "%s", tb_rc_text(rc));
  trace->was_read = rc == TB_OK && got == 0;
  tk_numbers_fini(&r.numbers);
  tk_pass_end(r.pass);
  return trace->was_read;
}

static int compare_ids(const void *a, const void *b, void *self) {
  const struct tk_trace *trace = self;
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  int64_t p = trace->goroutine[x].id, q = trace->goroutine[y].id;

  if (p != q) return p < q ? -1 : 1;
  return x < y ? -1 : x > y;
}

bool tk_trace_sort_ids(struct tk_trace *trace, char error[TK_QUERY_ERROR]) {
  if (trace->by_id != NULL) return true;
  trace->by_id = malloc((trace->lives + 1) * sizeof *trace->by_id);
  if (trace->by_id == NULL) {
    snprintf(error, TK_QUERY_ERROR, "%s", tb_rc_text(TB_NOMEM));
    return false;
  }
  for (uint64_t life = 1; life < trace->lives; life++)
    if (trace->goroutine[life].is_known) trace->by_id[trace->ids++] = life;
  qsort_r(trace->by_id, trace->ids, sizeof *trace->by_id, compare_ids, trace);
  return true;
}

size_t tk_trace_find_id(const struct tk_trace *trace, int64_t id) {
  size_t low = 0, high = trace->ids;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (trace->goroutine[trace->by_id[middle]].id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* ---- numbers of stacks ---- */

/* Program counters alone, where there are any: a frame of a C program may get its name later. */
static uint64_t hash_stack(const struct to_callstack *stack) {
  uint64_t hash = TB_HASH_START;

  for (size_t i = 0; i < stack->len; i++) {
    const struct to_frame *frame = stack->frames[i];
    hash = tb_hash(hash, &frame->pc, sizeof frame->pc);
    if (frame->pc != 0) continue;
    hash = tb_hash(hash, frame->function.data, frame->function.len);
    hash = tb_hash(hash, frame->file.data, frame->file.len);
    hash = tb_hash(hash, &frame->line, sizeof frame->line);
  }
  return hash;
}

static bool make_numbers_room(struct tk_trace *trace) {
  size_t n = trace->stacks.count, room = 2 * n;

  if (n <= trace->stack_numbers) return true;
  int64_t *number = realloc(trace->stack_number, room * sizeof *number);
  if (number == NULL) return false;
  memset(number + trace->stack_numbers, 0, (room - trace->stack_numbers) * sizeof *number);
  trace->stack_number = number;
  trace->stack_numbers = room;
  return true;
}

/* Stacks of one hash, of which there are few, have numbers one after the other. */
static int64_t new_number(struct tk_trace *trace, uint32_t inner) {
  const uint64_t first = TO_STACK_OTHER + 1, numbers = TK_OF_TRACE - first;
  uint64_t at = hash_stack(tk_trace_stack(trace, inner)) % numbers, *place;

  while (tb_map_find(&trace->by_stack_number, first + at) != NULL) at = (at + 1) % numbers;
  if (tb_map_put(&trace->by_stack_number, first + at, &place, NULL) != TB_OK) return -1;
  *place = inner;
  return trace->stack_number[inner] = (int64_t)(first + at);
}

int64_t tk_trace_number_stack(struct tk_trace *trace, uint32_t inner) {
  if (inner <= TO_STACK_OTHER) return inner;
  if (!make_numbers_room(trace)) return -1;
  int64_t number = trace->stack_number[inner];
  return number != 0 ? number : new_number(trace, inner);
}

bool tk_trace_find_stack(struct tk_trace *trace, int64_t number, uint32_t *out_inner) {
  uint64_t *found = tb_map_find(&trace->by_stack_number, (uint64_t)number);
  uint32_t *next = &trace->next_to_number;

  if (*next <= TO_STACK_OTHER) *next = TO_STACK_OTHER + 1;
  for (; found == NULL && trace->was_read && *next < trace->stacks.count; ++*next)
    if (tk_trace_number_stack(trace, *next) == number)
      found = tb_map_find(&trace->by_stack_number, (uint64_t)number);
  if (found != NULL) *out_inner = (uint32_t)*found;
  return found != NULL;
}
