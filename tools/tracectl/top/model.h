/* SPDX-License-Identifier: Apache-2.0 */
/* The state of `tracectl top`: the collector's answers of the last seconds, for computing rates.
 *
 * Rates are over the last five seconds, since a program sends a generation about once a second.
 *
 * Memory    copies its inputs; at most TK_TOP_STREAMS streams, others are only counted.
 * Threads   use it from one thread at a time.
 */
#ifndef TK_TOP_MODEL_H
#define TK_TOP_MODEL_H

#include "proto/archive.pb-c.h"
#include "proto/feed.pb-c.h"
#include "proto/report.pb-c.h"
#include "tools/tracectl/args/selector.h"

enum {
  TK_TOP_STREAMS = 512,
  TK_TOP_CALLS = 128,
  TK_TOP_STOPS = 32,
  TK_TOP_ALERTS = 32,
  TK_TOP_SAMPLES = 6,
  TK_TOP_WHO_BYTES = 132,
  TK_TOP_WHERE_BYTES = 200,
};

struct tk_top_rates {
  double bytes_s, events_s;
};

struct tk_top_stream {
  unsigned char id[16];
  char who[TK_TOP_WHO_BYTES]; /* service/instance */
  char state[12];             /* live, waiting, closed, exec, unclean */
  unsigned go_version;
  uint64_t generations, broken, lost_generations, spool_bytes;
  struct tk_top_rates rates;
  uint64_t blocked_now, call_p99_ns;
  double stw_share; /* 0..1 */
  uint64_t stw_max_ns;
  struct {
    uint64_t at_ns, bytes, events;
  } sample[TK_TOP_SAMPLES]; /* oldest first */
  unsigned samples;
  bool seen; /* in the current answer */
  bool old;  /* its last data is outdated, as a flight recorder's after a snap */
};

struct tk_top_call { /* a system call that is blocked */
  uint64_t age_ns;
  uint64_t as_of_wall_ns; /* time of an old stream's last data; 0: now */
  int64_t goroutine;
  bool lower_bound, is_c; /* is_c: of a C program */
  char who[TK_TOP_WHO_BYTES], where[TK_TOP_WHERE_BYTES];
};

struct tk_top_stop { /* stops of the world for one reason, of all streams */
  char id[64];
  uint64_t count, total_ns, p99_ns, max_ns, open; /* p99: the maximum of all streams */
  char worst[TK_TOP_WHO_BYTES];
};

struct tk_top_alert {
  uint64_t wall_ns;
  char text[TK_TOP_WHERE_BYTES]; /* begins with the stream's name */
};

struct tk_top_model {
  char version[24], health[160];
  uint64_t archive_bytes, archive_segments, disk_free_bytes;
  unsigned live, waiting, closed, unclean; /* streams */
  uint64_t lost_generations;
  char last_loss[TK_TOP_WHERE_BYTES]; /* reason and name of the first stream with one */
  struct tk_top_rates rates;          /* of all streams */
  struct tk_top_stream stream[TK_TOP_STREAMS];
  size_t streams, streams_more; /* by state, then by name */
  struct tk_top_call call[TK_TOP_CALLS];
  size_t calls;         /* present ones first, then by age */
  uint64_t calls_total; /* now */
  struct tk_top_stop stop[TK_TOP_STOPS];
  size_t stops; /* most time first */
  struct tk_top_alert alert[TK_TOP_ALERTS];
  size_t alerts; /* newest first */
  uint64_t alerts_total;
  const char *report_kind; /* report shown instead of calls and stops; NULL: none */
  char *report;            /* text for all streams; NULL: none yet */
  size_t report_lines;
};

bool tk_top_wants(const struct tk_selector *selector, const Tracecollect__V1__StreamStatus *stream);
/* now_ns: monotonic. Takes only selected streams. */
void tk_top_take_status(struct tk_top_model *model, const Tracecollect__V1__StatusReply *status,
                        const struct tk_selector *selector, uint64_t now_ns);
/* Call each second after the status: clears the previous reports; then pass each report. */
void tk_top_clear_reports(struct tk_top_model *model);
void tk_top_take_report(struct tk_top_model *model, const Tracecollect__V1__StreamReport *report);
/* Owns text (malloc); kind must be static. NULL, NULL: no report is shown. */
void tk_top_show_report(struct tk_top_model *model, const char *kind, char *text);
void tk_top_take_alert(struct tk_top_model *model, uint64_t wall_ns, const char *text);

#endif
