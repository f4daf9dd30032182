/* SPDX-License-Identifier: Apache-2.0 */
/* The latest figures of every stream: written by the loops, read by HTTP and /metrics.
 *
 * A report is a packed StreamReport (proto/report.proto), one for each stream, kind and window; a new one
 * replaces the old one. Published reports never change: a reader works on a snapshot.
 *
 * A report is made when a reader asks for it, and kept until its stream has new figures:
 *
 *   loop:    outdate() ──> out of date          asked() ──> make it ──> publish() ──> up to date
 *                                                 ^                        |
 *   reader:  collect() ──> marks what it needs ───┘       waits <──────────┘
 *
 * This is the one table that threads share under a lock, held only to look up a stream and swap a pointer. No
 * publisher waits for a reader: readers take references and release the lock first. A reader waits for the loops
 * for some time (wait_ms) and then gets the last version of each report. Readers are threads that may block, never loops.
 *
 * Memory    at most bytes_max of packed bytes; above that, and above TC_REPORTS_CLOSED_MAX closed streams,
 *           the streams that ended first are dropped, then the older ones of reports that can be made again. Lent memory is
 *           valid until the callback returns.
 * Threads   any; see above. A maker's functions: the thread that makes its reports.
 * Errors    new: TB_NOMEM, TB_IO. publish: TB_BUDGET (the report is not kept), TB_NOMEM. outdate: TB_NOMEM.
 *           collect: TB_NOMEM, the callback's.
 */
#ifndef TC_ANALYSIS_REPORT_TABLE_H
#define TC_ANALYSIS_REPORT_TABLE_H

#include "online/analysis/analysis.h"

enum { TC_REPORTS_CLOSED_MAX = 256, TC_REPORT_STREAM_BYTES = 16, TC_REPORTS_WAIT_MS = 2000 };

/* All pointers are lent: publish() copies, a callback must not keep them. */
struct tc_report {
  const unsigned char *stream; /* TC_REPORT_STREAM_BYTES */
  const char *service, *instance;
  const char *kind;   /* "syscall", "stw" */
  const char *window; /* "10s", "1m", "5m", "all" */
  const void *bytes;  /* packed StreamReport */
  size_t len;
  uint64_t ended_wall_ns; /* end of the stream, whose last figures these are; 0: it is still open */
  uint64_t published_ns;  /* CLOCK_MONOTONIC; set by publish() */
  /* The time that the report is of, and the newest of all that were collected with it; 0: unknown. Set by the table. */
  uint64_t until_wall_ns, newest_wall_ns;
};

/* Fields that are NULL or 0 do not restrict. */
struct tc_report_select {
  const unsigned char *stream;
  const char *service, *instance, *kind, *window;
  uint32_t kinds;   /* bits of enum to_analysis_kind, 0: all; unknown kinds always fit */
  uint32_t wait_ms; /* 0: TC_REPORTS_WAIT_MS */
};

/* A set of reports of one stream. */
struct tc_report_set {
  uint32_t kinds[TO_WINDOWS]; /* bits of enum to_analysis_kind */
};

struct tc_reports;

TB_MUST tb_rc tc_reports_new(size_t bytes_max, struct tc_reports **out);
void tc_reports_free(struct tc_reports *reports);

TB_MUST tb_rc tc_reports_publish(struct tc_reports *reports, const struct tc_report *report);

/* --- reports made on demand --- */

/* A loop that makes reports of its streams. wake: called under the lock whenever asked() has something new; it must only
 * call uv_async_send(). */
struct tc_report_maker;
TB_MUST tb_rc tc_report_maker_new(struct tc_reports *reports, void (*wake)(void *self), void *self,
                                  struct tc_report_maker **out);
/* From now on no reports of its streams are made, and no reader waits for them. NULL is fine. */
void tc_report_maker_free(struct tc_report_maker *maker);

/* Marks the reports of a stream with new figures as out of date; the maker makes them on demand. ref: the maker's number
 * for the stream. */
TB_MUST tb_rc tc_reports_outdate(struct tc_report_maker *maker, const unsigned char *stream,
                                 const char *service, const char *instance, uint32_t ref);
/* Gets the next stream whose reports readers wait for; returns false if there is none. Each report of the set must be
 * published or reported as missed. */
bool tc_reports_asked(struct tc_report_maker *maker, uint32_t *out_ref, struct tc_report_set *out);
/* Call if the report cannot be made now. */
void tc_reports_missed(struct tc_reports *reports, const unsigned char *stream,
                       enum to_analysis_kind kind, enum to_window window);
/* Returns the reports of the stream that are out of date. */
struct tc_report_set tc_reports_outdated(struct tc_reports *reports, const unsigned char *stream);
/* Marks the stream as ended: its reports stay readable until others need the room. */
void tc_reports_close(struct tc_reports *reports, const unsigned char *stream);

typedef tb_rc tc_report_fn(void *self, const struct tc_report *report);
/* Returns the number of selected streams that have not ended. */
size_t tc_reports_live(struct tc_reports *reports, const struct tc_report_select *select);
/* Was it made of a window that had passed when the newest one that was collected with it was made? */
bool tc_report_is_past(const struct tc_report *report);
/* Has reports made that are out of date, then calls each for all, by stream (in order of creation), kind and window. If
 * each returns another code than TB_OK, the walk ends with that code. No lock is held, so each may take its time. */
TB_MUST tb_rc tc_reports_collect(struct tc_reports *reports, const struct tc_report_select *select,
                                 tc_report_fn *each, void *self);

#endif
