/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by reports of waits: rows by entry function, longest waits, open waits. Private to this room. */
#ifndef TO_ANALYSIS_WAITS_H
#define TO_ANALYSIS_WAITS_H

#include "online/analysis/analysis_state.h"
#include "online/measure/longest.h"

/* Returns the row of an entry function, which is the first column. */
TB_MUST tb_rc to__waits_entry(const struct to_analyses *a, struct to_draft *d, unsigned table,
                              uint32_t entry, struct to_draft_value **out);

/* Columns of a list of the longest waits. */
enum {
  TO_LONG_GOROUTINE,
  TO_LONG_BEGIN,
  TO_LONG_LENGTH,
  TO_LONG_WHY,
  TO_LONG_WAKER,
  TO_LONG_STACK,
  TO_LONG_WAKER_STACK,
  TO_LONG_COLUMNS
};
/* Adds the longest waits. why: returns the text of a sum's reason. */
TB_MUST tb_rc to__waits_longest(const struct to_analyses *a, struct to_draft *d, unsigned table,
                                const struct to_longest *longest,
                                struct to_string (*why)(const struct to_analyses *a,
                                                        const struct to_span_sum *sum));

/* A list of the oldest open waits. */
enum { TO_WAITS_LISTED = 1024 };
struct to_wait_now {
  to_ns since;
  int64_t goroutine, waker; /* waker: TO_NONE if unknown */
  uint64_t stack;           /* of the span */
  uint8_t why;
  bool idle, known; /* known: its begin was seen */
};
struct to_waits_now {
  struct to_wait_now *wait, *spare; /* idle ones last, then oldest first */
  uint32_t *rank;
  size_t n;
};
TB_MUST tb_rc to__waits_now_begin(struct to_waits_now *w, struct to_draft *d);
void to__waits_now_note(struct to_waits_now *w, const struct to_wait_now *wait);
/* Sorts the list and cuts it to TO_WAITS_LISTED. */
void to__waits_now_end(struct to_waits_now *w);

/* Adds a row for an open wait. The first columns are the goroutine, its age and why it waits. */
TB_MUST tb_rc to__waits_now_row(struct to_analyses *a, struct to_draft *d, unsigned table,
                                const struct to_wait_now *wait, struct to_string why,
                                struct to_draft_value **out, const struct to_callstack **out_stack);

#endif
