/* SPDX-License-Identifier: Apache-2.0 */
/* Rolling figures of ordered events, in windows: O(1) per event.
 *
 * An analysis is a row of online/analysis/analyses.def. Its figures are sums and histograms of spans. A span is
 * counted with its whole length when it ends; an open span is in no sum, only in the list of what is
 * open now. "Now" is the time of the last event. A span that began before the first sync is counted
 * as a lower bound.
 *
 * A report names the time it covers and is exact for [from, until]. A window reaches back at least
 * its own length and at most one slot further: 2 s for 10s, 10 s for 1m, 60 s for 5m, nothing for all
 * (online/window/window.h). A quantile is off by at most the error that its scale has (online/window/histogram.h).
 * The same events give the same report, live or from a file.
 *
 * The reports of consecutive stretches (TO_WINDOW_STRETCH) can be added up to the report of the time from the first's
 * begin to the last's end: pack/merge.h.
 *
 * Memory    everything from mem. Tables have at most stacks_max rows by stack; further stacks are
 *           summed in the row "other". A report is lent until the next call on the same object; each
 *           text in it ends with a NUL.
 * Threads   use each object from one thread at a time.
 * Time      trace clock nanoseconds; wall clock only if a name says so.
 * Errors    TB_BUDGET, TB_NOMEM: the event is not counted; the figures stay consistent.
 */
#ifndef TO_ANALYSIS_ANALYSIS_H
#define TO_ANALYSIS_ANALYSIS_H

#include "base/mem.h"
#include "online/analysis/report.h"

const char *to_analysis_name(enum to_analysis_kind kind);  /* "syscall" */
const char *to_analysis_about(enum to_analysis_kind kind); /* one sentence */
const struct to_schema *to_analysis_schema(enum to_analysis_kind kind);
bool to_analysis_find(const char *name, enum to_analysis_kind *out);

struct to_analysis_room; /* online/analysis/room.h */

struct to_analysis_config {
  to_ns blocked_after_ns; /* key syscall.blocked_after: a call this long is reported as blocked */
  size_t stacks_max;      /* rows by stack; further stacks are summed in one row "other" */
  const char *idle; /* key analysis.idle, a list as in online/spans/stacks/idle.h; NULL: none */
  struct to_analysis_room *room; /* shared by the streams of a thread; NULL: an own one */
  bool is_live; /* keeps fewer lengths if the stream has few events (online/window/window.h) */
  /* After a restart or a hole: have goroutines that wait at this stack been a leak before? NULL: no. */
  bool (*was_leak)(void *self, const struct to_callstack *stack);
  void *self;
  bool has_stretches; /* to_analyses_mark() will be called */
  bool every_curve;   /* computes the tables of gc with sweeps and by P too, which cost much */
};

enum { TO_STACKS_MAX_DEFAULT = 4096 };
#define TO_BLOCKED_AFTER_NS_DEFAULT INT64_C(10000000)

struct to_analyses;

TB_MUST tb_rc to_analyses_new(struct tb_mem *mem, const struct to_analysis_config *config,
                              struct to_analyses **out);
void to_analyses_free(struct to_analyses *a); /* accepts NULL */
/* Replaces config.idle for events counted from here on. Call it between generations. */
TB_MUST tb_rc to_analyses_idle(struct to_analyses *a, const char *patterns);
/* Takes the slices of a to_event_sink, in order; ignores the Sync at a file's end, which has no generation. */
TB_MUST tb_rc to_analyses_events(struct to_analyses *a, const struct to_generation *gen,
                                 const struct to_event *events, size_t n);
/* Call it after a generation's last event while its tables exist: from to_reader_on_end(). If they no longer exist, pass
 * gen NULL: stacks of open spans are lost. Reports made between a generation's slices read its tables, so call this or
 * to_analyses_epoch() before the tables are freed. */
TB_MUST tb_rc to_analyses_generation_ends(struct to_analyses *a, const struct to_generation *gen);
/* Thins generations from here on, or counts them again: goroutines' states that end in a thinned one are in no distribution
 * and no table (docs/ANALYSES.md). Findings, the watch and all other figures go on. Reports state the number of
 * events of thinned generations. Call it between generations. */
void to_analyses_thin(struct to_analyses *a, bool thins);
/* Begins a new epoch, after a hole or a broken generation: open spans are dropped, totals stay. */
void to_analyses_epoch(struct to_analyses *a);
/* Sets one instant on both clocks, for streams whose generations carry no clock (before Go 1.25). */
void to_analyses_clock(struct to_analyses *a, to_ns trace_ns, uint64_t wall_ns);

/* Returns the wall clock of an instant of the trace clock; 0: unknown. */
uint64_t to_analyses_wall(const struct to_analyses *a, to_ns trace_ns);

/* Returns in whose words people read what the analyses report: online/words/words.h. */
enum to_program to_analyses_program(const struct to_analyses *a);

/* Spans that analyses report to a caller (struct to_watch) as they happen. */
enum to_watched_event {
  TO_SYSCALL_BLOCKED, /* a call has lost its P and is still open */
  TO_SYSCALL_LONG,    /* an open call that to_analyses_overdue() found */
  TO_SYSCALL_ENDED,   /* a call that had lost its P, or took at least syscall_ns */
  TO_WORLD_RESTARTED,
};
struct to_watched {
  enum to_watched_event what;
  to_ns begin, end; /* end: now, if it is still open */
  int64_t goroutine, thread;
  bool blocked;                     /* the call lost its P */
  bool lower_bound;                 /* it began before the first sync */
  bool reported;                    /* TO_SYSCALL_ENDED: was reported as TO_SYSCALL_LONG before */
  bool idle;                        /* a call that waits for work; online/spans/stacks/idle.h */
  const struct to_callstack *stack; /* valid as long as the analyses; NULL: not kept */
  struct to_string reason;          /* TO_WORLD_RESTARTED: as in the trace, and canonical */
  const char *id;
};
struct to_region_time;   /* online/spans/spans.h */
struct to_watched_task { /* a long task that has ended */
  to_ns begin, end;
  uint64_t task;
  struct to_string type;
  int64_t goroutine;                /* the goroutine that began it; TO_NONE: unknown */
  const struct to_callstack *stack; /* where it began; NULL: not kept */
  const struct to_region_time *did; /* sum over the goroutines in its regions; NULL: unknown */
};
struct to_watch {
  void *self;
  void (*span)(void *self, const struct to_watched *span); /* lent for the call */
  to_ns syscall_ns; /* INT64_MAX: only calls that lost their P */
  void (*task)(void *self, const struct to_watched_task *task); /* likewise; NULL: no tasks */
  to_ns task_ns;                                                /* shortest task that is reported */
  uint64_t events; /* bits of enum tw_event below 64, reported after the analyses */
  void (*event)(void *self, const struct to_generation *gen, const struct to_event *ev);
};
/* NULL turns the watch off. */
void to_analyses_watch(struct to_analyses *a, const struct to_watch *watch);
void to_analyses_overdue(struct to_analyses *a, to_ns age_ns);

/* Conditions that a person should look at, reported for as long as they last. */
enum to_finding_kind {
  TO_FINDING_DEADLOCK, /* goroutines wait for each other in a circle: suspected */
  TO_FINDING_CONVOY,   /* a queue of three or more, in three generations in a row */
  TO_FINDING_STALL, /* goroutines wait over 1 s for a lock or a send because of a system call that is as long */
  TO_FINDING_LEAK, /* ever more goroutines wait for too long: a hint */
  TO_FINDING_ASSISTS, /* a tenth or more of the running time is mark assists, in two generations in a row */
  TO_FINDING_STARVED, /* two or more goroutines wait for each P on average, in two generations in a row */
  TO_FINDING_MISNESTED, /* regions end in another order than they began: Go's tools refuse the trace */
  TO_FINDINGS
};
const char *to_finding_name(enum to_finding_kind kind); /* "deadlock" */
/* In the words of a finding of unknown cause, where the cause would be. */
#define TO_UNKNOWN_PLACE "an unknown place"
struct to_finding {
  enum to_finding_kind kind;
  uint64_t key; /* unique within kind and stream; the same for as long as the condition lasts */
  to_ns since;
  int64_t goroutine;                /* one that is involved; TO_NONE: unknown */
  uint64_t count;                   /* goroutines involved; 0: not counted */
  const struct to_callstack *stack; /* where they wait; NULL: not kept */
  /* Tells it from others of the same kind and stack: a place, a lock, a function, the same in each run of a program. A NUL follows if it
   * is not empty. */
  struct to_string cause;
  struct to_string words; /* a sentence for the user; a NUL follows */
};
struct to_finding_sink {
  void *self;
  void (*finding)(void *self, const struct to_finding *finding); /* lent for the call */
};
/* Reports all current findings. Call it after to_analyses_generation_ends(), when the generation is whole. */
TB_MUST tb_rc to_analyses_findings(struct to_analyses *a, const struct to_finding_sink *sink);

/* At most rows_max rows in each table, "other" not counted. */
TB_MUST tb_rc to_analyses_report(struct to_analyses *a, enum to_analysis_kind kind,
                                 enum to_window window, size_t rows_max,
                                 const struct to_report **out);
/* Makes a report without quantiles, at a fraction of the cost. */
TB_MUST tb_rc to_analyses_totals(struct to_analyses *a, enum to_analysis_kind kind,
                                 enum to_window window, size_t rows_max,
                                 const struct to_report **out);
/* Makes the figures and each table's number of rows, at a fraction of a report's cost. */
TB_MUST tb_rc to_analyses_figures(struct to_analyses *a, enum to_analysis_kind kind,
                                  enum to_window window, bool with_quantiles,
                                  const struct to_report **out);
/* How long the world was stopped for one reason since the start. */
struct to_stop_total {
  const char *id; /* lent, valid as long as the analyses: "/stw/gc/mark-termination" */
  uint64_t total_ns;
};
/* Lists at most max reasons, at a fraction of the cost of totals; returns how many. */
size_t to_analyses_stops(const struct to_analyses *a, size_t max, struct to_stop_total *out);
/* Ends the window TO_WINDOW_STRETCH and begins the next one. Call it between generations. */
TB_MUST tb_rc to_analyses_mark(struct to_analyses *a);
/* Returns the last report; lent like it. */
const struct to_report *to_analyses_last_report(const struct to_analyses *a);

#endif
