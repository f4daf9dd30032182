/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of waits (online/explain/chains.h) in the contention report: two tables, and suspected deadlocks. */
#ifndef TO_ANALYSIS_CHAIN_TABLES_H
#define TO_ANALYSIS_CHAIN_TABLES_H

#include "online/analysis/analysis_state.h"
#include "online/explain/chains.h"

enum {
  TO__CHAIN_STACK,
  TO__CHAIN_REASON,
  TO__CHAIN_WAITING,
  TO__CHAIN_AGE,
  TO__CHAIN_GOROUTINE,
  TO__CHAIN_LENGTH,
  TO__CHAIN_HOW,
  TO__CHAIN_END,
  TO__CHAIN_LAST,
  TO__CHAIN_LAST_ENTRY,
  TO__CHAIN_LAST_STACK,
  TO__CHAIN_WORDS,
  TO__CHAIN_COLUMNS
};
enum {
  TO__CYCLE_GOROUTINE,
  TO__CYCLE_LENGTH,
  TO__CYCLE_AGE,
  TO__CYCLE_SUSPECTED,
  TO__CYCLE_STACK,
  TO__CYCLE_WORDS,
  TO__CYCLE_COLUMNS
};
extern const struct to_field to__chain_column[TO__CHAIN_COLUMNS];
extern const struct to_field to__cycle_column[TO__CYCLE_COLUMNS];

#define TO__CHAINS_TABLE                                                                           \
  {                                                                                                \
    .name = "chains", .about = "Waits longer than 1 s, and what each waits for in the end",        \
    .order_about = "longest wait first", .keys = 1, .columns = TO__CHAIN_COLUMNS,                  \
    .column = to__chain_column, .order = { { TO__CHAIN_AGE + 1 }, { TO__CHAIN_WAITING + 1 } },     \
    .is_list = true, .is_now = true                                                                \
  }
#define TO__CYCLES_TABLE                                                                           \
  {                                                                                                \
    .name = "cycles", .about = "Goroutines that wait for each other in a circle",                  \
    .order_about = "suspected deadlocks first, then the longest waits", .keys = 1,                 \
    .columns = TO__CYCLE_COLUMNS, .column = to__cycle_column,                                      \
    .order = { { TO__CYCLE_SUSPECTED + 1 }, { TO__CYCLE_AGE + 1 } }, .is_list = true,              \
    .is_now = true                                                                                 \
  }

/* Begins of generations. A cycle that did not change for two whole generations is a suspect. */
enum { TO__QUIET = 2, TO__QUIET_LONG = 10 };
struct to__generation_begins {
  to_ns at[TO__QUIET_LONG + 1]; /* newest first */
  unsigned n;
};
void to__generation_begins(struct to__generation_begins *begins, to_ns time);

/* Fills both tables and the figure. reasons: those of waits that form queues. */
TB_MUST tb_rc to__chain_rows(struct to_analyses *a, struct to_draft *d,
                             const struct to__generation_begins *begins, uint64_t reasons,
                             unsigned chains_table, unsigned cycles_table,
                             unsigned deadlocks_figure);
/* Reports each suspected deadlock, and each system call that other goroutines wait for. */
TB_MUST tb_rc to__chain_findings(struct to_analyses *a, const struct to__generation_begins *begins,
                                 uint64_t reasons, const struct to_finding_sink *sink);
/* The chain of the goroutine that has waited longest in a queue. number: the stack or the lock that the queue belongs to. */
struct to__queue_chain {
  int64_t goroutine;      /* TO_NONE: the queue is empty */
  uint32_t stack;         /* where it waits; TO_STACK_OTHER: unknown */
  struct to_string words; /* empty for an endless chain: a circle that is not a suspect */
  bool is_deadlock;       /* the chain leads into a suspected deadlock */
};
TB_MUST tb_rc to__chain_of_queue(struct to_analyses *a, const struct to__generation_begins *begins,
                                 uint64_t reasons, uint32_t number, bool is_lock,
                                 struct to__queue_chain *out);

#endif
