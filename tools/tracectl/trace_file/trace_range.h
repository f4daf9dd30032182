/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a trace file, as --gen A..B, --since T, --until T and --goroutine N name them.
 *
 * Errors    TB_BROKEN: usage; TB_NOTFOUND: nothing of the file is in it; else as reading the file says.
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

/* Runs of generations that follow each other, in their order. Zeroed to begin with. */
struct tk_trace_ranges {
  struct tk_trace_range *part;
  size_t n;
};
/* Looks the generations up, in the index beside the file or by passing over the file. Several parts only for a
 * goroutine: those between are of generations in which it does nothing. */
TB_MUST tb_rc tk_trace_ranges_find(const char *verb, const char *path,
                                   const struct tk_trace_range_ask *ask, struct tb_diag *diag,
                                   struct tk_trace_ranges *out);
void tk_trace_ranges_fini(struct tk_trace_ranges *parts);

/* A sink that hands on only events from --since up to --until; those of a generation without a wall clock all. And of these,
 * with --goroutine, only what it does and what is done to it.
 * The Sync that ends a trace comes if anything came before it. */
struct tk_trace_range_sink {
  const struct tk_trace_range_ask *ask;
  struct to_event_sink to;
  bool any; /* something was handed on */
};
tb_rc tk_trace_range_events(void *self, const struct to_generation *gen,
                            const struct to_event *events, size_t n);

/* A time of the trace's clock on the wall clock. */
uint64_t tk_wall_of(const struct to_clock *clock, to_ns time);

#endif
