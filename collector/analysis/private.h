/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the scheduler's files:
 *
 *   scheduler.c  the ring of streams with work, a slice a turn, what comes in
 *   stream.c     one stream: made, found, forgotten, its memory charged twice
 *   job.c        one stream's work: read, feed, run, report the verdict
 *   reports.c    when a stream's reports are made, and for whom
 *   triggers.c   rules that watch a stream
 *   kept_reports.c  reports that stay when the traces have gone
 *   late.c       verdicts of generations that found no room, made up when no stream has work
 */
#ifndef TC_ANALYSIS_PRIVATE_H
#define TC_ANALYSIS_PRIVATE_H

#include <sys/queue.h>

#include "base/map.h"
#include "collector/analysis/feed_encoder.h"
#include "collector/analysis/scheduler.h"
#include "online/analysis/analysis.h"
#include "online/trace/reader.h"

enum {
  TC__SCHEDULER_HEADER_BYTES = 16,      /* of a trace */
  TC__SCHEDULER_SPARE_BYTES = 32 << 20, /* at most, for each loop */
  TC__SCHEDULER_REPORT_NS =
      1000000000, /* figures are published once in this time: at most, and at least */
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
 * KEEP puts a report into the history, where one is due. TELL posts the verdict; the store may have no room yet. */
enum tc__scheduler_step {
  TC__SCHEDULER_NEXT_JOB,
  TC__SCHEDULER_READ,
  TC__SCHEDULER_FEED,
  TC__SCHEDULER_RUN,
  TC__SCHEDULER_KEEP,
  TC__SCHEDULER_TELL
};

struct tc__understood {
  STAILQ_ENTRY(tc__understood) in_work; /* in the ring */
  struct tc_scheduler *u;
  bool in_ring;
  uint32_t ref;
  unsigned char id[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  struct tb_mem mem;
  size_t mem_reported; /* of mem.bytes, what the metric knows */
  struct tb_diag diag;
  struct to_reader *reader;
  struct to_analyses *analyses;
  struct tc_tap_event *tapped;  /* NULL: no lease wants its events */
  struct tc_feed_encoder *feed; /* NULL: no agent gets one */
  unsigned idle_version;        /* the scheduler's, that analyses know */
  struct tr_watch *watch;       /* by the rules of rules_version; NULL: by none yet */
  uint64_t rules_version;
  bool analyses_failed; /* the fault was theirs, not the reader's */
  bool share_spent;     /* memory was refused because all streams together have taken theirs */
  bool new_epoch;       /* ordering begins again with the next generation */
  bool in_history;      /* its stops so far */
  struct {
    uint64_t last_ns, seen_ns; /* wall clock: the last kept, the newest figures; 0: none */
    struct tb_buf reply;       /* being made, of so many kinds */
    unsigned kinds;
  } kept;
  bool closed; /* its last generation has been worked through: it goes once its reports are made */
  uint64_t broken;
  TAILQ_ENTRY(tc__understood) by_heard; /* in the order of heard_ns */
  uint64_t heard_ns;

  /* Reports to be made, and those of them that go out on the feed as well. */
  struct tc_report_set due, due_on_feed;
  bool in_asked; /* readers wait for some */
  TAILQ_ENTRY(tc__understood) asked;
  uint64_t told_ns;       /* history and feed have the figures of then, */
  bool in_told, has_news; /* and there are newer ones: for the history, */
  unsigned news_on_feed;  /* and for the feed, a bit for each window */
  uint64_t window_told_ns[TO_WINDOWS];
  TAILQ_ENTRY(tc__understood) by_told; /* in the order of told_ns */

  struct tc__scheduler_job *jobs, **jobs_end;
  size_t waiting;
  bool left_out; /* the one that came last: the next begins a new epoch */
  enum tc__scheduler_step step;
  unsigned char header[TC__SCHEDULER_HEADER_BYTES];
  int fd;               /* -1: none is open */
  unsigned char *bytes; /* the generation's, charged to the share */
  size_t room;          /* of bytes */
  size_t len, have, fed;
  bool begun;              /* the reader has it: */
  uint64_t written_before; /* its events of earlier generations */
  uint64_t delivered; /* of this one, Syncs and all: verdict.events are those the program wrote */
  struct tc_verdict verdict;
};

enum { TC__LATE_MAX = 16384 }; /* generations: some 12 MiB of names, for each loop */
struct tc__late_job;
struct tc__late_work;

struct tc_scheduler {
  struct tc_scheduler_env env;
  uv_idle_t work;
  uv_async_t wake;
  uv_timer_t retry; /* a verdict found the store's queue full */
  struct tb_mem mem;
  struct tb_mem share; /* of analysis.memory_max, ours: what all streams here take together */
  struct tb_map by_ref;
  char *idle_patterns; /* the key analysis.idle */
  unsigned idle_version;
  struct tr_rules *rules; /* a copy of env.triggers', of rules_version; NULL: none yet */
  uint64_t rules_version;
  struct tc__understood *first_in_line; /* waits for memory; no other begins before it */
  size_t bytes_held;                    /* of the generations that are worked through */
  void *
      spare; /* bytes of the last generation, kept for the next: fresh memory costs a fault a page */
  size_t spare_bytes;
  size_t waiting, waiting_max; /* generations of all streams here */
  struct {
    STAILQ_HEAD(, tc__late_job) jobs;
    size_t n;
    struct tc__late_work *work; /* of the first one; NULL: it is not begun */
    tb_rc rc;                   /* how it went, with is_judged */
    bool is_judged;             /* the store had no room for its verdict */
  } late;
  STAILQ_HEAD(, tc__understood) ring;
  TAILQ_HEAD(, tc__understood) by_heard; /* the longest silent first */
  struct tc_report_maker *maker;
  TAILQ_HEAD(, tc__understood) asked;
  TAILQ_HEAD(, tc__understood) by_told; /* since less than TC__SCHEDULER_REPORT_NS */
};

/* --- stream.c ------------------------------------------------------------------------ */

/* The stream that `said` is about; made if it is new. */
TB_MUST tb_rc tc__understood_find(struct tc_scheduler *u, const struct tc_reply *said,
                                  struct tc__understood **out);
void tc__understood_heard(struct tc__understood *s); /* something came of it just now */
/* With its totals. It must not stand in the ring. */
void tc__understood_forget(struct tc__understood *s);
void tc__understood_job_drop(struct tc__understood *s); /* the first one */
void tc__understood_bytes_drop(struct tc__understood *s);
void tc__scheduler_spare_drop(struct tc_scheduler *u);
void tc__understood_analyses_drop(struct tc__understood *s);
void tc__understood_reader_drop(struct tc__understood *s);
void tc__understood_report_memory(struct tc__understood *s); /* to the metric */

/* --- job.c ------------------------------------------------------------------------- */

/* One step. TB_OK: go on; TB_AGAIN: the store must make room first; TB_END: no work left;
 * TB_BUDGET: other streams must end a generation first, go on with them. */
TB_MUST tb_rc tc__understood_step(struct tc__understood *s);

/* How a generation was ordered; a code of PENDING: its bytes were not seen. */
void tc__verdict_say(struct tc_verdict *v, tb_rc rc, const struct tb_diag *diag,
                     const struct tc_reply *stored);
/* False: the store has no room now. */
TB_MUST bool tc__verdict_submit(const struct tc_scheduler *u, const struct tc_verdict *v);

/* --- triggers.c -------------------------------------------------------------------- */

/* A generation is whole and analysed; v is its verdict. */
void tc__understood_look(struct tc__understood *s, const struct tc_verdict *v);
void tc__understood_look_at_hole(struct tc__understood *s);
/* A rule that is built in has fired, and its alert is the caller's; self: a struct tc__understood. */
void tc__understood_passed(void *self, const char *rule, const char *words, uint64_t gen, to_ns at);

/* --- kept_reports.c ---------------------------------------------------------------- */

/* A generation is whole and analysed; its last event. */
void tc__understood_kept_see(struct tc__understood *s, to_ns last_ns);
/* Reports are due to be kept; is_over: nothing more comes of the stream. */
bool tc__understood_keeps(const struct tc__understood *s, bool is_over);
/* Makes the next of them. True: that was the last. */
bool tc__understood_keep(struct tc__understood *s);
void tc__understood_kept_drop(struct tc__understood *s);

/* --- late.c ------------------------------------------------------------------------ */

bool tc__late_add(struct tc_scheduler *u, struct tc_reply *stored); /* owns it; false: no room */
/* TB_OK: go on; TB_AGAIN: the store must make room first; TB_END: there are none. */
TB_MUST tb_rc tc__late_step(struct tc_scheduler *u);
void tc__late_drop(struct tc_scheduler *u); /* all: they stay pending until the next start */

/* --- reports.c --------------------------------------------------------------------- */

/* Has it reports to be made? */
bool tc__understood_is_due(const struct tc__understood *s);
/* Makes and publishes the next one. */
void tc__understood_report(struct tc__understood *s);
/* It has new figures. */
void tc__understood_news(struct tc__understood *s);
/* It is about to go: all that is out of date is due. */
void tc__understood_last_reports(struct tc__understood *s);
/* Another thread waits for reports: takes over what is asked for. */
void tc__scheduler_take_asked(struct tc_scheduler *u);
/* Tells the news of streams whose last figures came too soon after others. Returns the next stream that has reports to be made,
 * NULL if none has. */
struct tc__understood *tc__scheduler_tell_late(struct tc_scheduler *u, uint64_t now);
void tc__understood_reports_forget(struct tc__understood *s);

#endif
