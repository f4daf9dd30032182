/* SPDX-License-Identifier: Apache-2.0 */
/* Sum of a critical path: the subject's own time by what it did, and the time of each goroutine that it waited for. The
 * parts add up to the interval exactly.
 *
 * Memory from mem: some 100 bytes a goroutine.
 * Threads use each object from one thread at a time.
 * Errors TB_BUDGET, TB_NOMEM. */
#ifndef TO_EXPLAIN_PATH_SUM_H
#define TO_EXPLAIN_PATH_SUM_H

#include "online/explain/critical_path.h"

enum to_path_part {
  TO_PATH_CPU,
  TO_PATH_RUNNABLE,
  TO_PATH_SYSCALL,
  TO_PATH_ASSIST,
  TO_PATH_STOPPED, /* running or runnable while the world was stopped */
  TO_PATH_WAITING, /* a wait that is not followed */
  TO_PATH_NOT_KNOWN,
  TO_PATH_PARTS
};

struct to_path_times {
  uint64_t total, ns[TO_PATH_PARTS];
};

struct to_path_behind {
  const struct to_history *history; /* NULL: unknown goroutine */
  struct to_path_times times;
  size_t longest; /* index of its longest piece in the path */
};

struct to_path_sum {
  struct tb_mem *mem;
  struct to_path_times own;             /* the subject's */
  uint64_t own_waiting[TO_REASONS_MAX]; /* WAITING by to_spans_reason() */
  uint64_t behind_total;
  struct to_path_behind *behind; /* most time first */
  size_t n, room;
};

TB_MUST tb_rc to_path_sum_new(struct to_path_sum *s, const struct to_path *path, uint64_t life,
                              struct tb_mem *mem);
void to_path_sum_fini(struct to_path_sum *s); /* accepts a zeroed one */

#endif
