/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the scheduler's files:
 *
 *   scheduler.c  the ring of streams with work, one slice a turn; messages of the store
 *   stream.c     one stream: create, find, forget; its memory, charged twice
 *   job.c        one stream's work: read, feed, run, submit the verdict
 *   reports.c    when a stream's reports are made, and for whom
 *   findings.c  what is wrong with a stream
 *   triggers.c   rules that watch a stream
 *   kept_reports.c  reports that are archived and outlive the traces
 *   late.c       verdicts of generations for which there was no room, made when no stream has work
 *   thinning.c   which generations are thinned while the loop cannot follow
 */
#ifndef TC_ANALYSIS_PRIVATE_H
#define TC_ANALYSIS_PRIVATE_H

#include <sys/queue.h>

#include "base/map.h"
#include "collector/analysis/feed_encoder.h"
#include "collector/analysis/scheduler.h"
#include "collector/analysis/thinning.h"
#include "online/analysis/analysis.h"
#include "online/analysis/room.h"
#include "online/trace/reader.h"

enum {
  TC__SCHEDULER_HEADER_BYTES = 16,      /* bytes of a trace's header */
  TC__SCHEDULER_SPARE_BYTES = 32 << 20, /* limit for each loop */
  TC__SCHEDULER_REPORT_NS =
      1000000000, /* figures are published once in this time, if they change */
};

struct tc__scheduler_job { /* one stored generation */
  struct tc__scheduler_job *next;
  struct tc_reply *stored;
  uint64_t stored_wall_ns;
};

/* Steps of the first job of a stream:
 *
 *              begun         all bytes        a part         all events
 *   NEXT_JOB ────────> READ ──────────> FEED <──────> RUN ───────────────> KEEP ──> TELL ──> NEXT_JOB
 *      │                 └── a fault ─────┴───────────┴───────────────────────────>──┤
 *      └── the stream has ended ─────────────────────────────────────────────────────┘
 *
 * KEEP archives a report if one is due. TELL submits the verdict, and waits while the store has no room. */
enum tc__scheduler_step {
  TC__SCHEDULER_NEXT_JOB,
  TC__SCHEDULER_READ,
  TC__SCHEDULER_FEED,
  TC__SCHEDULER_RUN,
  TC__SCHEDULER_KEEP,
  TC__SCHEDULER_TELL
};

enum { TC__FINDINGS_MAX = 64 };
struct tc__finding {
  uint64_t key;
  uint64_t id;        /* the kept finding's; 0: none is kept */
  to_ns passed_on_ns; /* by the stream's clock */
  uint8_t kind;
  bool is_seen;  /* in this generation */
  bool is_shown; /* to a subscriber of the feed */
  bool is_muted; /* not shown */
};

struct tc__analysed {
  STAILQ_ENTRY(tc__analysed) in_work; /* in the ring */
  struct tc_scheduler *u;
  bool in_ring;
  unsigned turns; /* in a row for its generation */
  uint32_t ref;
  unsigned char id[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  struct tb_mem mem;
  size_t mem_reported; /* part of mem.bytes that the metric contains */
  struct tb_diag diag;
  struct to_reader *reader;
  struct to_analyses *analyses;
  struct tc_tap_event *tapped;  /* NULL: no lease selects its events */
  struct tc_feed_encoder *feed; /* NULL: the feed is off */
  unsigned idle_version;        /* version of the scheduler's patterns that the analyses use */
  struct tr_watch *watch;       /* made from the rules of rules_version; NULL: not made yet */
  uint64_t rules_version;
  struct {
    struct tc__finding *at; /* NULL: none */
    size_t n, room;
  } findings;                    /* those that continue */
  struct tc__exceeded *exceeded; /* a list for this generation; NULL: none */
  bool analyses_failed;          /* the analyses failed, not the reader */
  bool share_spent; /* an allocation failed because all streams together used up the share */
  bool new_epoch;   /* ordering begins anew with the next generation */
  bool in_history;  /* the pause ring has its totals */
  struct {
    uint64_t last_ns, seen_ns;       /* wall clock: last archived report, newest figures; 0: none */
    uint64_t from_ns, ended_wall_ns; /* times of the record being made */
    struct tb_buf reply;             /* the record being made, with the kinds below `kinds` */
    unsigned kinds;
  } kept;
  bool closed; /* all generations are done: forget it once its reports are made */
  uint64_t broken;
  TAILQ_ENTRY(tc__analysed) by_heard; /* in the order of heard_ns */
  uint64_t heard_ns;

  /* Reports to be made; those of them that are also published on the feed. */
  struct tc_report_set due, due_on_feed;
  bool in_asked; /* in the list `asked`: readers wait for its reports */
  TAILQ_ENTRY(tc__analysed) asked;
  uint64_t reported_ns;  /* when pause ring and feed last received its figures */
  bool in_by_reported;   /* in the list by_reported */
  bool history_pending;  /* newer figures for the pause ring */
  unsigned feed_pending; /* windows with newer figures for the feed, a bit each */
  uint64_t window_reported_ns[TO_WINDOWS];
  TAILQ_ENTRY(tc__analysed) by_reported; /* in the order of reported_ns */

  struct tc__scheduler_job *jobs, **jobs_end;
  size_t waiting;
  uint64_t first_ns;  /* since when the first job is the first */
  uint64_t worked_ns; /* time of its slices since then */
  uint64_t turn;      /* number of the next generation, for tc_thinning_thins() */
  bool thins;         /* the generation in work is thinned */
  uint64_t asked_ns;  /* when a reader last waited for its reports; 0: never */
  bool left_out;      /* the newest generation had no room: the next begins a new epoch */
  enum tc__scheduler_step step;
  unsigned char header[TC__SCHEDULER_HEADER_BYTES];
  int fd;               /* -1: none is open */
  unsigned char *bytes; /* of the generation; charged to the share */
  size_t room;          /* allocated size of bytes */
  size_t len, have, fed;
  bool begun;              /* the reader has begun this generation */
  uint64_t written_before; /* events of earlier generations */
  uint64_t delivered;      /* its events, with Syncs; verdict.events: only the program's */
  struct tc_verdict verdict;
};

enum { TC__LATE_MAX = 16384 }; /* deferred generations of a loop; their names take some 12 MiB */
struct tc__late_job;
struct tc__late_work;

struct tc_scheduler {
  struct tc_scheduler_env env;
  uv_idle_t work;
  uv_async_t wake;
  uv_timer_t retry; /* runs after the store's queue was full */
  struct tb_mem mem;
  struct tb_mem share;          /* this loop's part of analysis.memory_max, for all its streams */
  struct tb_mem stacks_mem;     /* stacks that several streams use, charged to the share */
  size_t stacks_reported;       /* their part of the metric so far */
  struct to_analysis_room room; /* lent to the stream whose turn it is; has the stacks of all */
  struct to_generation_pool *generations; /* tables of generations, charged to the share */
  struct tb_map by_ref;
  char *idle_patterns; /* the key analysis.idle */
  unsigned idle_version;
  unsigned findings_wanted; /* bits of enum to_finding_kind, the key alert.findings */
  struct tr_rules *rules;   /* copy of env.triggers' rules, of rules_version; NULL: none yet */
  uint64_t rules_version;
  struct tc__analysed *first_in_line; /* waits for memory; no other stream begins before it */
  size_t bytes_held;                  /* of all generations in work */
  void *spare; /* buffer of the last generation, reused: fresh memory costs a fault a page */
  size_t spare_bytes;
  size_t waiting, waiting_max; /* generations of all streams of this loop */
  struct tc_thinning thinning;
  uint64_t thinning_logged_ns; /* 0: never */
  bool thinning_is_logged;     /* the log says that generations are thinned */
  struct {
    STAILQ_HEAD(, tc__late_job) jobs;
    size_t n;
    struct tc__late_work *work; /* for the first job; NULL: not begun */
    tb_rc rc;                   /* result, if is_judged */
    bool is_judged;             /* done; the store had no room for the verdict yet */
  } late;
  STAILQ_HEAD(, tc__analysed) ring;
  TAILQ_HEAD(, tc__analysed) by_heard; /* the longest silent first */
  struct tc_report_maker *maker;
  TAILQ_HEAD(, tc__analysed) asked;
  TAILQ_HEAD(, tc__analysed) by_reported; /* reported less than TC__SCHEDULER_REPORT_NS ago */
};

/* --- stream.c ------------------------------------------------------------------------ */

/* Finds the stream that `said` is about, or creates it. */
TB_MUST tb_rc tc__analysed_find(struct tc_scheduler *u, const struct tc_reply *said,
                                struct tc__analysed **out);
void tc__analysed_heard(struct tc__analysed *s); /* notes a sign of life */
/* Forgets the stream and its totals. It must not be in the ring. */
void tc__analysed_forget(struct tc__analysed *s);
void tc__analysed_job_drop(struct tc__analysed *s); /* the first job */
void tc__analysed_bytes_drop(struct tc__analysed *s);
void tc__scheduler_spare_drop(struct tc_scheduler *u);
void tc__analysed_analyses_drop(struct tc__analysed *s);
void tc__analysed_reader_drop(struct tc__analysed *s);
void tc__analysed_report_memory(struct tc__analysed *s); /* to the metric */

/* --- job.c ------------------------------------------------------------------------- */

/* Does one step. TB_OK: continue; TB_AGAIN: the store must make room first; TB_END: no work left; TB_BUDGET: continue with
 * other streams, which must end a generation first. */
TB_MUST tb_rc tc__analysed_step(struct tc__analysed *s);

/* Fills in how a generation was ordered. The code PENDING means that its bytes were not read. */
void tc__verdict_say(struct tc_verdict *v, tb_rc rc, const struct tb_diag *diag,
                     const struct tc_reply *stored);
/* Returns false if the store has no room now. */
TB_MUST bool tc__verdict_submit(const struct tc_scheduler *u, const struct tc_verdict *v);

/* --- triggers.c -------------------------------------------------------------------- */

/* Checks the rules after a whole generation was analysed; v is its verdict. */
void tc__analysed_look(struct tc__analysed *s, const struct tc_verdict *v);
void tc__analysed_look_at_hole(struct tc__analysed *s);
/* Reports that a built-in rule has fired; the caller sends the alert. self: a struct tc__analysed. */
void tc__analysed_passed(void *self, const char *rule, const char *words, uint64_t gen, to_ns at);

/* --- findings.c -------------------------------------------------------------------- */

/* Passes on the findings of a whole generation that was analysed; v is its verdict. */
void tc__analysed_findings(struct tc__analysed *s, const struct tc_verdict *v);
/* Notes a span that exceeds a threshold, as the encoder's exceeded(). self: a struct tc__analysed. */
struct tc_exceeded_text *tc__analysed_exceeded(void *self, const struct tc_exceeded *span);
/* Passes on all that were noted in generation gen. */
void tc__analysed_pass_exceeded(struct tc__analysed *s, uint64_t gen);
/* As was_leak() of the analyses' configuration. */
bool tc__analysed_was_leak(void *self, const struct to_callstack *stack);
void tc__analysed_findings_drop(struct tc__analysed *s);

/* --- kept_reports.c ---------------------------------------------------------------- */

/* Notes the time of the last event of a whole, analysed generation. */
void tc__analysed_kept_see(struct tc__analysed *s, to_ns last_ns);
/* Returns true if reports are due to be archived; is_over: the stream has ended. */
bool tc__analysed_keeps(const struct tc__analysed *s, bool is_over);
/* Makes the report of the next kind. Returns true if it was the last. */
bool tc__analysed_keep(struct tc__analysed *s);
void tc__analysed_kept_drop(struct tc__analysed *s);

/* --- late.c ------------------------------------------------------------------------ */

/* Owns stored; returns false if there is no room. */
bool tc__late_add(struct tc_scheduler *u, struct tc_reply *stored);
/* TB_OK: continue; TB_AGAIN: the store must make room first; TB_END: no job left. */
TB_MUST tb_rc tc__late_step(struct tc_scheduler *u);
/* Drops all jobs: the generations stay pending until the next start. */
void tc__late_drop(struct tc_scheduler *u);

/* --- thinning.c --------------------------------------------------------------------- */

/* Returns how many generations of the stream may wait. */
size_t tc__analysed_thinning_queue(const struct tc__analysed *s);
/* Call as the first job begins, before its analyses, and when it has ended. */
void tc__analysed_thinning_begin(struct tc__analysed *s);
void tc__analysed_thinning_end(struct tc__analysed *s);
void tc__scheduler_thinning_advance(struct tc_scheduler *u, uint64_t now);

/* --- reports.c --------------------------------------------------------------------- */

/* Returns true if reports are to be made. */
bool tc__analysed_is_due(const struct tc__analysed *s);
/* Makes and publishes the next report. */
void tc__analysed_report(struct tc__analysed *s);
/* Call when the stream has new figures. */
void tc__analysed_news(struct tc__analysed *s);
/* Call before the stream is forgotten: all reports that are out of date become due. */
void tc__analysed_last_reports(struct tc__analysed *s);
/* Adds what other threads wait for to the reports that are due. */
void tc__scheduler_take_asked(struct tc_scheduler *u);
/* Publishes figures that were held back because earlier ones had been published less than TC__SCHEDULER_REPORT_NS before.
 * Returns the next stream with reports to be made, or NULL. */
struct tc__analysed *tc__scheduler_tell_late(struct tc_scheduler *u, uint64_t now);
void tc__analysed_reports_forget(struct tc__analysed *s);

#endif
