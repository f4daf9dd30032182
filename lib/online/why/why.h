/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why one interval of a goroutine took so long: its critical path, summed up, and as JSON.
 *
 *     to_why_init(&w, &interval, spans, mem);
 *     to_why_add(&w, span, stack, by_stack);       -- each span again, open ones last (online/explain/timeline.h)
 *     rc = to_why_explain(&w);
 *     to_why_json(&w, rows, &out);
 *
 * A trace is read twice; lives and stacks have the same numbers both times, as they are assigned in its order.
 *
 * Memory    from mem, until to_why_fini(). interval and spans, which have the stacks, are lent until then.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_WHY_WHY_H
#define TO_WHY_WHY_H

#include "base/buf.h"
#include "online/explain/path_sum.h"
#include "online/explain/related.h"
#include "online/why/interval.h"

struct to_why {
  const struct to_why_interval *interval;
  const struct to_spans *spans;
  struct tb_mem *mem;
  struct to_timeline timeline;
  struct to_path path;
  struct to_path_sum sum;
  struct to_related related;
  double runnable; /* average number of runnable goroutines while the subject waited for a P */
  uint32_t procs;  /* 0: unknown */
};

void to_why_init(struct to_why *why, const struct to_why_interval *interval,
                 const struct to_spans *spans, struct tb_mem *mem);
void to_why_fini(struct to_why *why);
/* stack and by_stack: numbers of to_spans_stack(); by_stack of a LIFE is where it was created. */
TB_MUST tb_rc to_why_add(struct to_why *why, const struct to_span *span, uint32_t stack,
                         uint32_t by_stack);
TB_MUST tb_rc to_why_explain(struct to_why *why);

const char *to_why_part_name(enum to_path_part part); /* "gc_assist" */
const char *
to_why_part_words(enum to_path_part part); /* follows a time: "helping the garbage collector" */
/* Calls each() for the parts of the subject's own time, for waits by reason, and for the time behind others. */
typedef void to_why_part_fn(void *self, const char *part, const char *reason, uint64_t ns);
void to_why_each_part(const struct to_why *why, to_why_part_fn *each, void *self);

/* Returns the innermost frame of the program's own code; NULL: unknown. */
const struct to_frame *to_why_frame(const struct to_why *why, uint32_t stack);
/* Returns the function that a goroutine began with, if known. */
struct to_string to_why_entry(const struct to_why *why, const struct to_history *history,
                              uint32_t stack);
struct to_string to_why_related_entry(const struct to_why *why,
                                      const struct to_related_goroutine *of);
const char *to_why_piece_state(const struct to_path_piece *piece);
/* Returns "" if the piece is not a wait. */
const char *to_why_piece_reason(const struct to_why *why, const struct to_path_piece *piece);
/* Says why the path does not go on there; "" if it does. */
const char *to_why_piece_end(const struct to_why *why, const struct to_path_piece *piece);

/* Writes "figures":{...},"tables":{...} as in online/why/schema.h; rows: limit of the path's rows (0: all). */
void to_why_json(const struct to_why *why, size_t rows, struct tb_buf *out);

#endif
