/* SPDX-License-Identifier: Apache-2.0 */
/* Analysis on one loop: from stored generations to ordered events to figures.
 *
 *   STORED ──> queue of file names ──> generation in memory ──> reader ──> analyses ──> reports
 *                                                              ├──────> verdict for the meta
 *                                                              └──────> events and alerts for the feed
 *
 * A stream's generations are analysed in order on its home loop, one stream after the other, in slices of at most
 * analysis.slice: one slice a turn of the loop, so sockets and timers are served in between. Only file names are
 * queued, up to analysis.waiting_max, so the store never waits for the analysis. A generation for which there is no
 * room is not analysed; whether it is whole is found out once no stream has work (late.c). After a fault the next
 * generation begins a new ordering epoch.
 *
 * Memory    reader and analyses of a stream: agents.memory_max; of all streams of all loops: analysis.memory_max,
 *           in equal shares. The bytes of generations are charged to the share, a quarter of it at most. A stream
 *           that is silent for agents.abandon_after is forgotten with its totals; after three heartbeats if three
 *           quarters of the share are in use.
 * Threads   all calls on the loop's thread.
 * Errors    none: a generation that cannot be analysed gets a verdict with the reason.
 */
#ifndef TC_ANALYSIS_SCHEDULER_H
#define TC_ANALYSIS_SCHEDULER_H

#include <uv.h>

#include "collector/analysis/pauses_history.h"
#include "collector/analysis/report_table.h"
#include "collector/feed/publisher.h"
#include "collector/findings/findings.h"
#include "collector/history/history.h"
#include "collector/ingest/connection.h"
#include "collector/lease/event_tap.h"
#include "collector/model/counters.h"
#include "collector/store/store.h"
#include "collector/trigger/triggers.h"

struct tc_scheduler;

struct tc_scheduler_env {
  uv_loop_t *uv;
  const struct tc_config *config;
  struct tc_metrics *metrics;
  struct tc_reports *reports;
  struct tc_pauses_history *history; /* NULL: no pause ring */
  struct tc_feed *feed;              /* NULL: the feed is off */
  struct tc_event_tap *tap;          /* NULL: no leases */
  struct tc_triggers *triggers;      /* NULL: no rules */
  struct tc_findings *findings;      /* NULL: findings are not stored */
  struct tc_history *kept;           /* NULL: reports are not archived */
  struct tc_submit_sink store;       /* receives verdicts */
  unsigned loop;                     /* its port of the feed is the same */
  void *files;                       /* for open_file() */
  int (*open_file)(void *files, const struct tc_reply *stored); /* -1: errno */
};

TB_MUST tb_rc tc_scheduler_new(const struct tc_scheduler_env *env, struct tc_scheduler **out);
/* Drops queued work; call free() after the loop's last turn. */
void tc_scheduler_close(struct tc_scheduler *u);
void tc_scheduler_free(struct tc_scheduler *u);

/* Sets another value of analysis.idle, used for each stream from its next generation on. Owns patterns. */
void tc_scheduler_idle_patterns(struct tc_scheduler *u, char *patterns);

/* reply: TC_REPLY_STORED; TC_REPLY_ARCHIVED and TC_REPLY_LOST are passed on to the feed. Owns it. */
void tc_scheduler_reply(struct tc_scheduler *u, struct tc_reply *reply);
void tc_scheduler_tick(struct tc_scheduler *u);
bool tc_scheduler_is_idle(const struct tc_scheduler *u);
/* Returns the number of generations whose verdict is deferred until the loop is idle. */
size_t tc_scheduler_late(const struct tc_scheduler *u);

#endif
