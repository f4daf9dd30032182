/* SPDX-License-Identifier: Apache-2.0 */
/* The reports that `tracectl report` prints, from any source.
 *
 * Memory    everything is in the set until tk_report_set_fini().
 */
#ifndef TK_REPORT_SET_H
#define TK_REPORT_SET_H

#include "base/arena.h"
#include "online/analysis/analysis.h"
#include "proto/report.pb-c.h"

struct tk_go_kind;
struct tk_found;

enum tk_sum { TK_SUM_NONE, TK_SUM_FIRST, TK_SUM_ONLY };

struct tk_report_ask {
  bool kind[TO_ANALYSIS_KINDS]; /* selected kinds */
  enum to_window window;
  to_ns blocked_after_ns; /* for files: a collector has its own */
  /* for files: patterns of online/spans/stacks/idle.h; a collector has its own */
  const char *idle;
  size_t rows_max;  /* for files, rows of each table: a collector has its own limit */
  bool every_stack; /* for files: every stack has a row of its own */
  bool every_curve; /* for files: online/analysis/analysis.h */
  const struct tk_go_kind *go_profile; /* for files, one kind: also compute Go's profile; or NULL */
  bool progress;
  unsigned threads;                  /* for files: tools/tracectl/trace_file/trace_run.h */
  const struct tk_trace_range *part; /* for files; NULL: the whole file */
  enum tk_sum sum;                   /* of a whole service of a collector */
  bool findings;                     /* for files: note what is found, too (report/summary.h) */
  const char *verb;                  /* in messages */
};

struct tk_report_set {
  struct tb_arena arena;
  Tracecollect__V1__StreamReport **report;
  size_t n, room;
  Tracecollect__V1__StreamReport **merged; /* by kind, the sums of several streams' reports */
  size_t n_merged, merged_room;
  struct tk_found **finding; /* of a file */
  size_t found, found_room;
  uint64_t turn;                           /* generations whose findings were noted */
  Tracecollect__V1__StreamReport *profile; /* for a file, Go's profile, or NULL */
};

void tk_report_set_init(struct tk_report_set *set);
void tk_report_set_fini(struct tk_report_set *set); /* accepts a zeroed one */

/* Copies a packed StreamReport into the set. TB_NOMEM; TB_CORRUPT: not a report. */
TB_MUST tb_rc tk_report_set_add(struct tk_report_set *set, const void *packed, size_t len);

/* Adds a report that is in the set's arena. TB_NOMEM; TB_CORRUPT: it has no schema. */
TB_MUST tb_rc tk_report_set_put(struct tk_report_set *set, Tracecollect__V1__StreamReport *report);
/* Moves the report that was added last to the sums. */
TB_MUST tb_rc tk_report_set_is_sum(struct tk_report_set *set);

/* Moves reports of ended streams to the end; otherwise keeps the order. TB_NOMEM. */
TB_MUST tb_rc tk_report_set_live_first(struct tk_report_set *set);

/* Orders and analyses a whole trace file. Returns TK_DONE, or TK_FAILED after reporting on stderr:
 * the set then has what precedes the fault, nothing if that was in the header. */
int tk_report_file(const char *path, const struct tk_report_ask *ask, struct tk_report_set *set);

#endif
