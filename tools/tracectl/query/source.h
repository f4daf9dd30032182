/* SPDX-License-Identifier: Apache-2.0 */
/* A trace file as tables are made from it: its spans in order, read anew for each pass; and what all passes have in
 * common, goroutines and stacks, read once.
 *
 * Lives and stacks have the same numbers in each pass: they are given out in the order of the trace.
 *
 * Memory    the C library's: what is open, the goroutines that ever were, each stack once.
 * Threads   one.
 * Errors    text in the caller's buffer: the file cannot be read, or the trace is broken (after all spans before).
 */
#ifndef TK_QUERY_SOURCE_H
#define TK_QUERY_SOURCE_H

#include <stdbool.h>

#include "spans/pull.h"

struct tk_goroutine_row {
  int64_t id;
  bool is_known;             /* a life that was seen */
  bool created_known, ended; /* else it is older than the trace, or lives on */
  to_ns created, ended_at;
  uint64_t creator; /* life; 0: none is known */
  uint32_t creation_stack;
  uint32_t entry_stack;    /* its entry is this stack's innermost frame, or */
  bool entry_is_outermost; /* the outermost one: its creation was not seen */
  char *label;             /* NULL: none */
};

struct tk_source {
  const char *path;
  bool was_read;                      /* what follows is there */
  struct tk_goroutine_row *goroutine; /* by life */
  size_t lives, room;
  struct to_span_pull *pull; /* at its end: its stacks are the tables' */
  uint32_t stacks;           /* numbers below it */
};

void tk_source_init(struct tk_source *source, const char *path);
void tk_source_fini(struct tk_source *source);

enum { TK_SOURCE_TEXT = 400 };

/* Goroutines and stacks: reads the file once. */
bool tk_source_read(struct tk_source *source, char error[TK_SOURCE_TEXT]);
const struct to_callstack *tk_source_stack(const struct tk_source *source, uint32_t number);

/* One pass. */
struct tk_pass;

/* kinds: bits of enum to_span_kind; others may come as well. */
bool tk_pass_begin(const char *path, uint32_t kinds, struct tk_pass **out,
                   char error[TK_SOURCE_TEXT]);
void tk_pass_end(struct tk_pass *pass); /* accepts NULL */
/* A stack by its number: NULL for one that is not kept. Lent until tk_pass_end(). */
const struct to_callstack *tk_pass_stack(const struct tk_pass *pass, uint32_t number);

struct tk_span {
  const struct to_span *span; /* open ones come last */
  uint64_t gen;               /* of the event that ended it; 0: it is open after the last one */
  uint32_t stack, end_stack, by_stack;
  bool has_wall;
  uint64_t wall_ns; /* of its begin */
};
/* 1: a span, lent until the next call; 0: no more; -1: error. */
int tk_pass_next(struct tk_pass *pass, struct tk_span *out, char error[TK_SOURCE_TEXT]);

#endif
