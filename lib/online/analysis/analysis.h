/* SPDX-License-Identifier: Apache-2.0 */
/* Figures made from ordered events: rolling figures in windows, O(1) an event.
 *
 * An analysis is a row of online/analysis/analyses.def. Its figures are sums and histograms of spans, each
 * counted with its whole length where it ends; a span that is still open is in no sum, but in the
 * list of what is open now. "Now" is the time of the last event. A span that began before the first
 * sync is a lower bound and counted so.
 *
 * A report says which stretch of time it covers: everything in it is exact for [from, until].
 * A window reaches back at least its own length and at most one slot further: 1 s for 10s, 5 s for
 * 1m, 30 s for 5m, nothing for all (online/window/window.h). Quantiles are at most 0.1 % above the true
 * ones (online/window/histogram.h). The same events give the same report, from a file as live.
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

#include "base/mem.h"
#include "online/analysis/report.h"

const char *to_analysis_name(enum to_analysis_kind kind);  /* "syscall" */
const char *to_analysis_about(enum to_analysis_kind kind); /* one sentence */
const struct to_schema *to_analysis_schema(enum to_analysis_kind kind);
bool to_analysis_find(const char *name, enum to_analysis_kind *out);

struct to_analysis_config {
  to_ns blocked_after_ns; /* key syscall.blocked_after: a call this long counts as blocked now */
  size_t stacks_max;      /* rows kept by stack; the rest is summed in one row "other" */
  const char *
      idle; /* key analysis.idle: patterns of waits that are idle, as in online/spans/stacks/idle.h; NULL: none */
  bool is_live; /* one of many streams: one of few events keeps fewer lengths (online/window/window.h) */
  bool is_file; /* what is too dear for a live stream is worked out, too: tables of gc */
};

enum { TO_STACKS_MAX_DEFAULT = 4096 };
#define TO_BLOCKED_AFTER_NS_DEFAULT INT64_C(10000000)

/* All analyses, fed together. */
struct to_analyses;

TB_MUST tb_rc to_analyses_new(struct tb_mem *mem, const struct to_analysis_config *config,
                              struct to_analyses **out);
void to_analyses_free(struct to_analyses *a); /* accepts NULL */
/* Between generations: another value of config.idle, for what is counted from here on. */
TB_MUST tb_rc to_analyses_idle(struct to_analyses *a, const char *patterns);
/* The slices of a to_event_sink, as they come. Events of no generation (the Sync at a file's end) are passed
 * over: a live stream has none. */
TB_MUST tb_rc to_analyses_events(struct to_analyses *a, const struct to_generation *gen,
                                 const struct to_event *events, size_t n);
/* After a generation's last event, while its tables are there: from to_reader_on_end(). gen NULL: they are gone, and
 * with them the stacks of what goes on. Between a generation's slices reports look into its tables, so one of these
 * calls, or to_analyses_epoch(), comes before they go. */
TB_MUST tb_rc to_analyses_generation_ends(struct to_analyses *a, const struct to_generation *gen);
/* A hole or a broken generation: spans that are open are dropped, totals stay. */
void to_analyses_epoch(struct to_analyses *a);
/* One instant on both clocks, for streams whose generations carry no clock (before Go 1.25). */
void to_analyses_clock(struct to_analyses *a, to_ns trace_ns, uint64_t wall_ns);

/* Wall clock of an instant on the trace's; 0: unknown. */
uint64_t to_analyses_wall(const struct to_analyses *a, to_ns trace_ns);

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
  bool idle;                        /* of a call: it waits for work; online/spans/stacks/idle.h */
  const struct to_callstack *stack; /* valid as long as the analyses; NULL: not kept */
  struct to_string reason;          /* TO_WORLD_RESTARTED: as the trace says it, and canonical */
  const char *id;
};
struct to_region_time;   /* online/spans/spans.h */
struct to_watched_task { /* one that has ended, and was long */
  to_ns begin, end;
  uint64_t task;
  struct to_string type;
  int64_t goroutine;                /* that began it; TO_NONE: not known */
  const struct to_callstack *stack; /* where it began; NULL: not kept */
  const struct to_region_time *did; /* goroutines in its regions, together; NULL: not known */
};
struct to_watch {
  void *self;
  void (*span)(void *self, const struct to_watched *span); /* lent for the call */
  to_ns syscall_ns; /* INT64_MAX: only those that lost their P */
  void (*task)(void *self, const struct to_watched_task *task); /* likewise; NULL: none is wanted */
  to_ns task_ns;   /* of tasks that took at least so long */
  uint64_t events; /* bits of enum tw_event below 64: these as they are, after the analyses */
  void (*event)(void *self, const struct to_generation *gen, const struct to_event *ev);
};
/* NULL: the watch is off. */
void to_analyses_watch(struct to_analyses *a, const struct to_watch *watch);
/* Reports calls that are open for at least age_ns to the watch, each once. */
void to_analyses_overdue(struct to_analyses *a, to_ns age_ns);

/* What a person should look at, as long as it goes on. */
enum to_finding_kind {
  TO_FINDING_DEADLOCK, /* goroutines wait for each other in a circle: suspected */
  TO_FINDING_CONVOY,   /* a queue of three or more, in three generations in a row */
  TO_FINDING_STALL, /* goroutines wait for a lock or a send longer than 1 s, behind a system call that is as long */
  TO_FINDING_LEAK, /* ever more goroutines wait, and have done so for too long: a hint */
  TO_FINDING_ASSISTS, /* a tenth or more of the running time helps the garbage collector, in two generations in a row */
  TO_FINDING_STARVED, /* two or more goroutines wait for each P on average, in two generations in a row */
  TO_FINDING_MISNESTED, /* regions end in another order than they began: Go's tools refuse the trace */
  TO_FINDINGS
};
const char *to_finding_name(enum to_finding_kind kind); /* "deadlock" */
struct to_finding {
  enum to_finding_kind kind;
  uint64_t key; /* of this kind in this stream: the same as long as it goes on */
  to_ns since;
  int64_t goroutine;                /* one that it is about; TO_NONE: none is known */
  uint64_t count;                   /* goroutines that it is about; 0: not counted */
  const struct to_callstack *stack; /* where they wait; NULL: not kept */
  struct to_string words;           /* about them, in words, a NUL behind it */
};
struct to_finding_sink {
  void *self;
  void (*finding)(void *self, const struct to_finding *finding); /* lent for the call */
};
/* All that goes on now. After to_analyses_generation_ends(): the generation is whole. */
TB_MUST tb_rc to_analyses_findings(struct to_analyses *a, const struct to_finding_sink *sink);

/* At most rows_max rows in each table, "other" not counted. */
TB_MUST tb_rc to_analyses_report(struct to_analyses *a, enum to_analysis_kind kind,
                                 enum to_window window, size_t rows_max,
                                 const struct to_report **out);
/* The same without quantiles: it costs a part of that. */
TB_MUST tb_rc to_analyses_totals(struct to_analyses *a, enum to_analysis_kind kind,
                                 enum to_window window, size_t rows_max,
                                 const struct to_report **out);
/* The figures alone, and how many rows each table has: it costs a part of a report. */
TB_MUST tb_rc to_analyses_figures(struct to_analyses *a, enum to_analysis_kind kind,
                                  enum to_window window, bool with_quantiles,
                                  const struct to_report **out);
/* The last call's answer, lent likewise. */
const struct to_report *to_analyses_last_report(const struct to_analyses *a);

#endif
