/* SPDX-License-Identifier: Apache-2.0 */
/* Orders a whole trace file, "-" or packed file into a sink, with progress. */
#ifndef TK_TRACE_RUN_H
#define TK_TRACE_RUN_H

#include "online/reader.h"
#include "tools/tracectl/input.h"

struct tk_trace_run {
  tb_rc rc;            /* of the trace; TB_OK: whole */
  struct tb_diag diag; /* why not */
  uint64_t events, generations;
  unsigned version; /* 0: no header */
};

/* False: the file could not be read (said on stderr). The memory used stays below memory_max. part NULL:
 * all of the file. */
bool tk_trace_run(const char *verb, const char *path, const struct tk_part *part,
                  struct to_event_sink sink, uint64_t memory_max, bool progress,
                  struct tk_trace_run *out);

#endif
