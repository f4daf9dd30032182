/* SPDX-License-Identifier: Apache-2.0 */
/* Surveys a trace before it is ordered: version, start, contents, number of events.
 *
 * The first megabyte is enough for a progress bar: the number of events is then extrapolated. Given the whole
 * trace, the number is exact. Events are counted as written: a coroutine switch is one event here but
 * three when ordered, and a reader's Syncs do not count.
 *
 * Memory    from mem, released before the call returns.
 * Errors    TB_BROKEN, TB_UNSUPPORTED: the header cannot be read; see diag. A later fault ends the survey,
 *           and *out describes the bytes before the fault. TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_TRACE_SURVEY_H
#define TO_TRACE_SURVEY_H

#include "base/mem.h"
#include "online/event/event.h"

/* Contents that an analysis may need, as far as the surveyed bytes show them. */
enum to_capability {
  TO_HAS_THREADS = 1,      /* events name their thread */
  TO_HAS_CLOCK = 2,        /* wall clock in each generation: since header 1.25 */
  TO_HAS_END_MARKS = 4,    /* generations end with a mark: since header 1.26 */
  TO_HAS_SAMPLES = 8,      /* CPU samples */
  TO_HAS_EXPERIMENTS = 16, /* experimental batches or events */
};

struct to_survey {
  unsigned version; /* of the header: 22, 23, 25 or 26 */
  unsigned has;     /* enum to_capability */
  bool starts;      /* start_ns is valid: the first generation's clock was found */
  to_ns start_ns;   /* time of the earliest batch on the trace's own clock; before any event */
  uint64_t start_wall_ns; /* start_ns as time since 1970; 0: not recorded before 1.25 */
  uint64_t generations;   /* begun */
  uint64_t events;        /* timed events and CPU samples */
  bool exact;             /* the whole trace was read, without a fault */
};

/* Surveys the first n bytes of a trace of trace_bytes. diag may be NULL. */
TB_MUST tb_rc to_survey(const void *bytes, size_t n, uint64_t trace_bytes, struct tb_mem *mem,
                        struct tb_diag *diag, struct to_survey *out);

#endif
