/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/scan.h"

void tk__scan_end(struct tk_scan *scan) {
  if (scan->in_trace && scan->table->ops->end != NULL) scan->table->ops->end(scan);
  tk_numbers_fini(&scan->numbers);
  scan->in_trace = false;
}

/* got: result of a trace's scan. If the trace has no more rows, moves to the next trace's first
 * row. */
static int go_on(struct tk_scan *scan, int got, char error[TK_QUERY_ERROR]) {
  while (got == 0) {
    tk__scan_end(scan);
    if (scan->next_trace == scan->traces->n) break;
    scan->trace = &scan->traces->trace[scan->next_trace++];
    scan->in_trace = true;
    got = scan->table->ops->begin(scan, error);
  }
  return got;
}

int tk__scan_begin(struct tk_scan *scan, char error[TK_QUERY_ERROR]) {
  tk__scan_end(scan);
  scan->next_trace = 0;
  return go_on(scan, 0, error);
}

int tk__scan_next(struct tk_scan *scan, char error[TK_QUERY_ERROR]) {
  return go_on(scan, scan->table->ops->next(scan, error), error);
}
