/* SPDX-License-Identifier: Apache-2.0 */
/* The reports that an answer of `tracectl report` is made of, whatever they came from.
 *
 * Memory    everything is in the set until tk_report_set_fini().
 */
#ifndef TK_REPORT_SET_H
#define TK_REPORT_SET_H

#include "base/arena.h"
#include "online/analysis/analysis.h"
#include "proto/report.pb-c.h"

struct tk_go_kind;

struct tk_report_ask {
  bool kind[TO_ANALYSIS_KINDS]; /* wanted */
  enum to_window window;
  to_ns blocked_after_ns; /* of a file: a collector has its own */
  const char *idle;       /* of a file: patterns, as in online/spans/stacks/idle.h; a collector has its own */
  size_t rows_max;        /* of a file, in each table: a collector has its own limit */
  bool every_stack;       /* of a file: every stack gets a row of its own */
  const struct tk_go_kind *
      go_profile; /* of a file, with one kind wanted: what Go's tool counts is found out; NULL: not */
  bool progress;
  unsigned threads;                  /* of a file: tools/tracectl/trace_file/trace_run.h */
  const struct tk_trace_range *part; /* of a file; NULL: all of it */
  const char *verb;                  /* in messages */
};

struct tk_report_set {
  struct tb_arena arena;
  Tracecollect__V1__StreamReport **report;
  size_t n, room;
  Tracecollect__V1__StreamReport *profile; /* NULL, or the one of a file that Go's tool has, too */
};

void tk_report_set_init(struct tk_report_set *set);
void tk_report_set_fini(struct tk_report_set *set); /* accepts a zeroed one */

/* Copies a packed StreamReport in. Errors: TB_NOMEM; TB_CORRUPT: it is none. */
TB_MUST tb_rc tk_report_set_add(struct tk_report_set *set, const void *packed, size_t len);

/* Orders and analyses a whole trace file. TK_DONE; TK_FAILED: said on stderr, and the set holds what
 * was found before the fault, nothing if that was the header. */
int tk_report_file(const char *path, const struct tk_report_ask *ask, struct tk_report_set *set);

#endif
