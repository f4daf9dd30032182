/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of durations, and the windows for which they are computed. */
#ifndef TO_WINDOW_DISTRIBUTION_H
#define TO_WINDOW_DISTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

/* Durations of spans that ended in the window. */
struct to_sum {
  uint64_t count, total_ns, max_ns;
  uint64_t lower_bounds; /* how many of count began before the first sync */
};
/* Quantiles are at most 0.1 % above the true ones, and not available for every row: see online/window/buckets.h. */
struct to_distribution {
  struct to_sum sum;
  bool has_quantiles; /* false: the next four are 0 */
  uint64_t p50_ns, p90_ns, p99_ns, p999_ns;
};

enum to_window { TO_WINDOW_10S, TO_WINDOW_1MIN, TO_WINDOW_5MIN, TO_WINDOW_ALL, TO_WINDOWS };

const char *to_window_name(enum to_window window); /* "10s", "1m", "5m", "all" */
bool to_window_find(const char *name, enum to_window *out);

#endif
