/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on stderr for work that takes more than a second; nothing if stderr is not a
 * terminal. */
#ifndef TK_TERM_PROGRESS_H
#define TK_TERM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct tk_progress {
  const char *what;
  uint64_t total; /* 0: unknown, the bar only counts bytes */
  int64_t start_ns, next_ns;
  bool on, shown;
};

void tk_progress_begin(struct tk_progress *bar, const char *what, uint64_t total, bool wanted);
void tk_progress_at(struct tk_progress *bar, uint64_t done);
/* Removes the bar; call before printing on stderr. */
void tk_progress_end(struct tk_progress *bar);

#endif
