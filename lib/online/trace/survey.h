/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a trace, found out before it is read in order: version, start, contents, number of events.
 *
 * A look at its first megabyte is enough for a progress bar: the count is an estimate then, in proportion
 * to what was looked at. A look at all of it counts. Only what stands in the bytes is counted: a coroutine
 * switch is one event here and three in order, and a reader's Syncs are none.
 *
 * Memory    from mem, given back before the call returns.
 * Errors    TB_BROKEN, TB_UNSUPPORTED: no header that can be read; see diag. A fault further on ends the
 *           look, and what was seen before it stays in *out. TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_TRACE_SURVEY_H
#define TO_TRACE_SURVEY_H

#include "base/mem.h"
#include "online/event/event.h"

/* The parts that an analysis may find. Of a part, what that part shows. */
enum to_capability {
  TO_HAS_THREADS = 1,      /* events name the thread they happened on */
  TO_HAS_CLOCK = 2,        /* wall clock in each generation: since header 1.25 */
  TO_HAS_END_MARKS = 4,    /* a generation says where it ends: since header 1.26 */
  TO_HAS_SAMPLES = 8,      /* CPU samples */
  TO_HAS_EXPERIMENTS = 16, /* experimental batches or events */
};

struct to_survey {
  unsigned version;       /* of the header: 22, 23, 25 or 26 */
  unsigned has;           /* enum to_capability */
  bool starts;            /* the first generation's clock was seen: start_ns holds */
  to_ns start_ns;         /* of its earliest batch, on the trace's own clock; before any event */
  uint64_t start_wall_ns; /* the same since 1970; 0: before 1.25 a trace does not know */
  uint64_t generations;   /* begun */
  uint64_t events;        /* timed events and CPU samples */
  bool exact;             /* all of the trace was looked at and no fault found */
};

/* Looks at the first n bytes of a trace of trace_bytes. diag may be NULL. */
TB_MUST tb_rc to_survey(const void *bytes, size_t n, uint64_t trace_bytes, struct tb_mem *mem,
                        struct tb_diag *diag, struct to_survey *out);

#endif
