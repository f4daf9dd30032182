/* SPDX-License-Identifier: Apache-2.0 */
/* The latest figures of every stream: what the loops find, for HTTP and /metrics to
 * read.
 *
 * A report is a packed StreamReport (proto/report.proto), one for each stream, kind and window; a
 * new one takes the old one's place. Reports never change once published: a reader works on a
 * snapshot.
 *
 * A report is made when a reader asks for it, and kept until its stream has new figures:
 *
 *   loop:    outdate() ──> out of date          asked() ──> make it ──> publish() ──> up to date
 *                                                 ^                        |
 *   reader:  collect() ──> marks what it wants ───┘       waits <──────────┘
 *
 * This is the one table that threads share under a lock, which is held for a pointer swap (a stream is
 * found by its id's hash). No publisher ever waits for a reader: it takes references and lets go of the
 * lock first. A reader waits for loops TC_REPORTS_WAIT_MS at most; what is not made by then it has as it was
 * made last. Readers are threads that may block, never loops.
 *
 * Memory    at most bytes_max of packed bytes; above it, and above TC_REPORTS_CLOSED_MAX, streams
 *           that have ended give way, those first that ended first. Lent memory lives until the callback returns.
 * Threads   any; see above. A maker's functions: the thread that makes its reports.
 * Errors    new: TB_NOMEM, TB_IO. publish: TB_BUDGET (the report is not kept), TB_NOMEM. outdate: TB_NOMEM.
 *           collect: TB_NOMEM, the callback's.
 */
#ifndef TC_ANALYSIS_REPORT_TABLE_H
#define TC_ANALYSIS_REPORT_TABLE_H

#include "online/analysis/analysis.h"

enum { TC_REPORTS_CLOSED_MAX = 256, TC_REPORT_STREAM_BYTES = 16, TC_REPORTS_WAIT_MS = 2000 };

/* Everything is lent: publish() copies, a callback must not keep. */
struct tc_report {
  const unsigned char *stream; /* TC_REPORT_STREAM_BYTES */
  const char *service, *instance;
  const char *kind;   /* "syscall", "stw" */
  const char *window; /* "10s", "1m", "5m", "all" */
  const void *bytes;  /* packed StreamReport */
  size_t len;
  uint64_t ended_wall_ns; /* when the stream ended: these are its last figures; 0: it goes on */
  uint64_t published_ns;  /* CLOCK_MONOTONIC; set by publish() */
};

/* NULL or zero fields do not restrict. */
struct tc_report_select {
  const unsigned char *stream;
  const char *service, *instance, *kind, *window;
  uint32_t
      kinds; /* bits of enum to_analysis_kind: of these alone, and of kinds that are none of ours; 0: all */
};

/* Some reports of one stream. */
struct tc_report_set {
  uint32_t kinds[TO_WINDOWS]; /* bits of enum to_analysis_kind */
};

struct tc_reports;

TB_MUST tb_rc tc_reports_new(size_t bytes_max, struct tc_reports **out);
void tc_reports_free(struct tc_reports *reports);

TB_MUST tb_rc tc_reports_publish(struct tc_reports *reports, const struct tc_report *report);

/* --- what is made on demand --- */

/* A loop that makes reports of its streams. wake: called under the lock, whenever there is something to
 * be had from asked(); it does no more than uv_async_send(). */
struct tc_report_maker;
TB_MUST tb_rc tc_report_maker_new(struct tc_reports *reports, void (*wake)(void *self), void *self,
                                  struct tc_report_maker **out);
/* Its streams have none from here on, and no reader waits for them. NULL is fine. */
void tc_report_maker_free(struct tc_report_maker *maker);

/* A stream has new figures: its reports are out of date, and the maker makes them when they are asked for. ref: the
 * maker's number for it. */
TB_MUST tb_rc tc_reports_outdate(struct tc_report_maker *maker, const unsigned char *stream,
                                 const char *service, const char *instance, uint32_t ref);
/* The next stream of which readers wait for reports; false: there is none. Each of the set is to be published, or
 * missed. */
bool tc_reports_asked(struct tc_report_maker *maker, uint32_t *out_ref, struct tc_report_set *out);
/* It cannot be made now. */
void tc_reports_missed(struct tc_reports *reports, const unsigned char *stream,
                       enum to_analysis_kind kind, enum to_window window);
/* Those of the stream that are out of date. */
struct tc_report_set tc_reports_outdated(struct tc_reports *reports, const unsigned char *stream);
/* The stream has ended: its reports stay readable until others need the room. */
void tc_reports_close(struct tc_reports *reports, const unsigned char *stream);

typedef tb_rc tc_report_fn(void *self, const struct tc_report *report);
/* First what is out of date is made. In the order in which streams came, then by kind, then by window. A code other than
 * TB_OK from each ends the walk and is the answer. each may take its time: no lock is held. */
TB_MUST tb_rc tc_reports_collect(struct tc_reports *reports, const struct tc_report_select *select,
                                 tc_report_fn *each, void *self);

#endif
