/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR_CELLS = 30, FIRST_NS = 1000000000, EVERY_NS = 100000000 };

static int64_t now_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void tk_progress_begin(struct tk_progress *bar, const char *what, uint64_t total, bool wanted) {
  *bar = (struct tk_progress){ .what = what, .total = total };
  bar->on = wanted && isatty(STDERR_FILENO);
  if (!bar->on) return;
  bar->start_ns = now_ns();
  bar->next_ns = bar->start_ns + FIRST_NS;
}

void tk_progress_at(struct tk_progress *bar, uint64_t done) {
  if (!bar->on) return;
  int64_t now = now_ns();
  if (now < bar->next_ns) return;
  bar->next_ns = now + EVERY_NS;
  bar->shown = true;

  double rate = (double)done / 1e6 / ((double)(now - bar->start_ns) / 1e9);
  if (bar->total == 0 || done > bar->total) {
    fprintf(stderr, "\r%s %.1f MB, %.1f MB/s \033[K", bar->what, (double)done / 1e6, rate);
    return;
  }
  char cells[BAR_CELLS + 1];
  int full = (int)((double)done / (double)bar->total * BAR_CELLS);
  memset(cells, ' ', BAR_CELLS);
  memset(cells, '=', (size_t)full);
  cells[BAR_CELLS] = '\0';
  fprintf(stderr, "\r%s [%s] %3d%%, %.1f MB/s \033[K", bar->what, cells,
          (int)((double)done * 100 / (double)bar->total), rate);
}

void tk_progress_end(struct tk_progress *bar) {
  if (bar->shown) fputs("\r\033[K", stderr);
  bar->shown = false;
}
