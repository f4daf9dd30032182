/* SPDX-License-Identifier: Apache-2.0 */
/* A bar on stderr for work that takes more than a second; nothing where stderr is no terminal. */
#ifndef TK_TERM_PROGRESS_H
#define TK_TERM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct tk_progress {
  const char *what;
  uint64_t total; /* 0: not known, the bar counts bytes only */
  int64_t start_ns, next_ns;
  bool on, shown;
};

void tk_progress_begin(struct tk_progress *bar, const char *what, uint64_t total, bool wanted);
void tk_progress_at(struct tk_progress *bar, uint64_t done);
/* Wipes the bar; call before anything else is said on stderr. */
void tk_progress_end(struct tk_progress *bar);

#endif
