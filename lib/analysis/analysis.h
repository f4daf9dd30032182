/* SPDX-License-Identifier: Apache-2.0 */
/* Figures made from ordered events: rolling figures in windows, O(1) an event.
 *
 * An analysis is a row of analysis/analyses.def. Its figures are sums and histograms of spans, each
 * counted with its whole length where it ends; a span that is still open is in no sum, but in the
 * list of what is open now. "Now" is the time of the last event. A span that began before the first
 * sync is a lower bound and counted so.
 *
 * A report says which stretch of time it covers: everything in it is exact for [from, until].
 * A window reaches back at least its own length and at most one slot further: 1 s for 10s, 5 s for
 * 1m, 30 s for 5m, nothing for all (analysis/window.h). Quantiles are at most 0.1 % above the true
 * ones (analysis/histogram.h). The same events give the same report, from a file as live.
 *
 * Memory    everything from mem. Rows are bounded by stacks_max; what is beyond is summed in the
 *           row "other". A report is lent until the next call on the same object; a NUL follows
 *           each text in it.
 * Threads   use each object from one thread at a time.
 * Time      trace clock nanoseconds; wall clock only where a name says so.
 * Errors    TB_BUDGET, TB_NOMEM; the figures stay consistent, the event that met it is not counted.
 */
#ifndef TO_ANALYSIS_ANALYSIS_H
#define TO_ANALYSIS_ANALYSIS_H

#include "analysis/callstack.h"
#include "base/mem.h"

enum to_window { TO_WINDOW_10S, TO_WINDOW_1MIN, TO_WINDOW_5MIN, TO_WINDOW_ALL, TO_WINDOWS };

const char *to_window_name(enum to_window window); /* "10s", "1m", "5m", "all" */
bool to_window_find(const char *name, enum to_window *out);

enum to_analysis_kind {
#define TO_ANALYSIS(ID, name, about) TO_ANALYSIS_##ID,
#include "analysis/analyses.def"
#undef TO_ANALYSIS
  TO_ANALYSIS_KINDS
};

const char *to_analysis_name(enum to_analysis_kind kind);  /* "syscall" */
const char *to_analysis_about(enum to_analysis_kind kind); /* one sentence */
bool to_analysis_find(const char *name, enum to_analysis_kind *out);

struct to_analysis_config {
  to_ns blocked_after_ns; /* key syscall.blocked_after: a call this long counts as blocked now */
  size_t stacks_max;      /* rows kept by stack; the rest is summed in one row "other" */
};

enum { TO_STACKS_MAX_DEFAULT = 4096 };
#define TO_BLOCKED_AFTER_NS_DEFAULT INT64_C(10000000)

/* All analyses, fed together. */
struct to_analyses;

TB_MUST tb_rc to_analyses_new(struct tb_mem *mem, const struct to_analysis_config *config,
                              struct to_analyses **out);
void to_analyses_free(struct to_analyses *a); /* accepts NULL */
/* The slices of a to_event_sink, as they come. Events of no generation (the Sync at a file's end) are passed
 * over: a live stream has none. */
TB_MUST tb_rc to_analyses_events(struct to_analyses *a, const struct to_generation *gen,
                                 const struct to_event *events, size_t n);
/* A hole or a broken generation: spans that are open are dropped, totals stay. */
void to_analyses_epoch(struct to_analyses *a);
/* One instant on both clocks, for streams whose generations carry no clock (before Go 1.25). */
void to_analyses_clock(struct to_analyses *a, to_ns trace_ns, uint64_t wall_ns);

/* Of spans that ended in the window. */
struct to_sum {
  uint64_t count, total_ns, max_ns;
  uint64_t lower_bounds; /* of count: began before the first sync */
};
struct to_distribution {
  struct to_sum sum;
  uint64_t p50_ns, p90_ns, p99_ns;
};

/* Wall clock of an instant on the trace's; 0: unknown. */
uint64_t to_analyses_wall(const struct to_analyses *a, to_ns trace_ns);

struct to_syscall_row {
  const struct to_callstack *stack; /* NULL: the row "other" */
  struct to_sum calls, blocked;     /* blocked: those of calls that lost their P */
};
struct to_blocked_call {
  int64_t goroutine, thread;
  to_ns start;
  uint64_t age_ns;
  bool lost_proc;                   /* else merely open for blocked_after or longer */
  bool lower_bound;                 /* start is the first sync's; it began earlier */
  const struct to_callstack *stack; /* NULL: one of those that were not kept */
};
struct to_syscall_report {
  struct to_distribution calls, blocked;
  uint64_t born, died; /* goroutines that began (cgo callback) and ended inside a call */
  size_t open;         /* calls open now, blocked or not */
  size_t rows_total,
      rows; /* found, and listed: most blocked time first, then most time; "other" last */
  const struct to_syscall_row *row;
  size_t blocked_now_total, blocked_now; /* found, and listed: oldest first */
  const struct to_blocked_call *call;
  to_ns blocked_after_ns;
};

struct to_stw_reason {
  struct to_string reason; /* as the trace says it */
  const char *id;          /* canonical: /stw/gc/mark-termination */
  struct to_distribution stopped;
  uint64_t open; /* stops that have not ended */
};
struct to_stw_stopper {
  bool other;        /* all that have no row of their own */
  int64_t goroutine; /* TO_NONE: none, or the row "other" */
  struct to_string reason;
  struct to_sum stopped;
  const struct to_callstack *stack; /* of the longest; NULL: unknown */
};
struct to_stw_report {
  struct to_distribution stopped;
  struct to_distribution time_to_stop; /* count: of the stops where the trace gives it */
  double share_of_wall;                /* 0..1 of [from, until], an open stop included */
  size_t reasons;
  const struct to_stw_reason *reason; /* most time first */
  size_t stoppers_total, stoppers;    /* found, and listed: most time first; "other" last */
  const struct to_stw_stopper *stopper;
};

struct to_report {
  enum to_analysis_kind kind;
  enum to_window window;
  to_ns from, until;                    /* trace clock */
  uint64_t from_wall_ns, until_wall_ns; /* 0: unknown */
  uint64_t first_gen, last_gen;         /* 0: none */
  uint64_t events;                      /* between from and until, Sync included */
  uint64_t epochs;                      /* over the whole stream; 0: nothing came yet */
  struct to_syscall_report syscall;     /* if kind says so */
  struct to_stw_report stw;
};

/* The spans that an analysis sees, for a caller that wants them at once. */
enum to_watched_event {
  TO_SYSCALL_BLOCKED, /* a call has lost its P and goes on */
  TO_SYSCALL_LONG,    /* to_analyses_overdue() found it open */
  TO_SYSCALL_ENDED,   /* one that had lost its P, or was at least syscall_ns long */
  TO_WORLD_RESTARTED,
};
struct to_watched {
  enum to_watched_event what;
  to_ns begin, end; /* end: now, where it goes on */
  int64_t goroutine, thread;
  bool blocked;                     /* the call lost its P */
  bool lower_bound;                 /* it began before the first sync */
  bool reported;                    /* TO_SYSCALL_ENDED: as TO_SYSCALL_LONG before */
  const struct to_callstack *stack; /* valid as long as the analyses; NULL: not kept */
  struct to_string reason;          /* TO_WORLD_RESTARTED: as the trace says it, and canonical */
  const char *id;
};
struct to_watch {
  void *self;
  void (*span)(void *self, const struct to_watched *span); /* lent for the call */
  to_ns syscall_ns; /* INT64_MAX: only those that lost their P */
  uint64_t events;  /* bits of enum tw_event below 64: these as they are, after the analyses */
  void (*event)(void *self, const struct to_generation *gen, const struct to_event *ev);
};
/* NULL: the watch is off. */
void to_analyses_watch(struct to_analyses *a, const struct to_watch *watch);
/* Reports calls that are open for at least age_ns to the watch, each once. */
void to_analyses_overdue(struct to_analyses *a, to_ns age_ns);

/* At most rows_max rows in each list (blocked calls too), "other" not counted. */
TB_MUST tb_rc to_analyses_report(struct to_analyses *a, enum to_analysis_kind kind,
                                 enum to_window window, size_t rows_max,
                                 const struct to_report **out);
/* The last call's answer, lent likewise. */
const struct to_report *to_analyses_last_report(const struct to_analyses *a);

#endif
