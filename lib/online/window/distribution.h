/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of durations, and the windows for which they are computed. */
#ifndef TO_WINDOW_DISTRIBUTION_H
#define TO_WINDOW_DISTRIBUTION_H

#include <stdbool.h>

#include "online/window/histogram.h"

/* Durations of spans that ended in the window. */
struct to_sum {
  uint64_t count, total_ns, min_ns, max_ns;
  uint64_t lower_bounds; /* how many of count began before the first sync */
};
/* Sums are exact. Quantiles are off by at most to_histogram_error(histogram.scale), and are not available for every row:
 * see online/window/packed.h. */
struct to_distribution {
  struct to_sum sum;
  bool has_quantiles; /* false: the next four are 0, and the histogram is empty */
  uint64_t p50_ns, p90_ns, p99_ns, p999_ns;
  struct to_histogram histogram;
};

enum to_window {
  TO_WINDOW_10S,
  TO_WINDOW_1MIN,
  TO_WINDOW_5MIN,
  TO_WINDOW_ALL,
  TO_WINDOWS, /* that a user can ask for */
  TO_WINDOW_STRETCH =
      TO_WINDOWS /* since the mark: stretches follow each other without hole or overlap */
};

const char *to_window_name(enum to_window window); /* "10s", "1m", "5m", "all", "stretch" */
/* Finds one of TO_WINDOWS. */
bool to_window_find(const char *name, enum to_window *out);

#endif
