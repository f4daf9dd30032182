/* SPDX-License-Identifier: Apache-2.0 */
/* The latest figures of every stream: what the loops find, for the archive service and /metrics to
 * read.
 *
 * A report is a packed StreamReport (proto/report.proto), one for each stream, kind and window; a
 * new one takes the old one's place. Reports never change once published: a reader works on a
 * snapshot.
 *
 * This is the one table that threads share under a lock. Messages to an owner would make each
 * reader wait for a loop's turn, and publishing happens about once a second a stream, so the lock
 * is held for a pointer swap (a stream is found by its id's hash) and no publisher ever waits for a reader:
 * it takes references and lets go of the lock first.
 *
 * Memory    at most bytes_max of packed bytes; above it, and above TC_REPORTS_CLOSED_MAX, streams
 *           that have ended give way, those first that ended first. Lent memory lives until the callback returns.
 * Threads   any; see above.
 * Errors    new: TB_NOMEM, TB_IO. publish: TB_BUDGET (the report is not kept), TB_NOMEM. collect: TB_NOMEM, the
 *           callback's.
 */
#ifndef TC_ANALYSIS_REPORT_TABLE_H
#define TC_ANALYSIS_REPORT_TABLE_H

#include "base/result.h"

enum { TC_REPORTS_CLOSED_MAX = 256, TC_REPORT_STREAM_BYTES = 16 };

/* Everything is lent: publish() copies, a callback must not keep. */
struct tc_report {
  const unsigned char *stream; /* TC_REPORT_STREAM_BYTES */
  const char *service, *instance;
  const char *kind;   /* "syscall", "stw" */
  const char *window; /* "10s", "1m", "5m", "all" */
  const void *bytes;  /* packed StreamReport */
  size_t len;
  bool closed;           /* the stream has ended: these are its last figures */
  uint64_t published_ns; /* CLOCK_MONOTONIC; set by publish() */
};

/* NULL or zero fields do not restrict. */
struct tc_report_select {
  const unsigned char *stream;
  const char *service, *instance, *kind, *window;
};

struct tc_reports;

TB_MUST tb_rc tc_reports_new(size_t bytes_max, struct tc_reports **out);
void tc_reports_free(struct tc_reports *reports);

TB_MUST tb_rc tc_reports_publish(struct tc_reports *reports, const struct tc_report *report);
/* The stream has ended: its reports stay readable until others need the room. */
void tc_reports_close(struct tc_reports *reports, const unsigned char *stream);

typedef tb_rc tc_report_fn(void *self, const struct tc_report *report);
/* In order of publication of each stream's first report, then kind, then window. A code other than
 * TB_OK from each ends the walk and is the answer. each may take its time: no lock is held. */
TB_MUST tb_rc tc_reports_collect(struct tc_reports *reports, const struct tc_report_select *select,
                                 tc_report_fn *each, void *self);

#endif
