/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a trace file, selected by --gen A..B, --since T, --until T and --goroutine N.
 *
 * Errors    TB_BROKEN: usage; TB_NOTFOUND: the file has no such part; otherwise those of reading the file.
 */
#ifndef TK_TRACE_FILE_TRACE_RANGE_H
#define TK_TRACE_FILE_TRACE_RANGE_H

#include "online/event/generation.h"
#include "tools/tracectl/args/selector.h"
#include "tools/tracectl/trace_file/input.h"

struct tk_trace_range_ask {
  struct tk_selector which; /* by number and by time */
  uint64_t goroutine;       /* 0: any */
};

/* Runs of consecutive generations, in order. Zeroed at first. */
struct tk_trace_ranges {
  struct tk_trace_range *part;
  size_t n;
};
/* Finds the generations in an index, or by scanning the file. There are several parts only for a goroutine: in between are
 * generations without events of it. */
TB_MUST tb_rc tk_trace_ranges_find(const char *verb, const char *path,
                                   const struct tk_trace_range_ask *ask, struct tb_diag *diag,
                                   struct tk_trace_ranges *out);
void tk_trace_ranges_fini(struct tk_trace_ranges *parts);

/* A sink that passes on events from --since to --until, or all if a generation has no wall clock; with --goroutine, only its
 * events and those about it. The Sync at the end is passed on if any event was. */
struct tk_trace_range_sink {
  const struct tk_trace_range_ask *ask;
  struct to_event_sink to;
  bool any; /* an event was passed on */
};
tb_rc tk_trace_range_events(void *self, const struct to_generation *gen,
                            const struct to_event *events, size_t n);

/* Converts a time of the trace's clock to the wall clock. */
uint64_t tk_wall_of(const struct to_clock *clock, to_ns time);

#endif
