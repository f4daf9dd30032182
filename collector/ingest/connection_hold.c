/* SPDX-License-Identifier: Apache-2.0 */
/* Measures and reports how long a connection waits; session.c decides that it waits. Short holds are how the limits work; a
 * connection that was held for half of the window is reported to the agent and the operator.
 *
 * If nothing is stored, the reason is reported to the agent, too, as it cannot see the collector's disk. For the operator
 * the store logs it. */
#include <inttypes.h>
#include <string.h>

#include "collector/base/logger.h"
#include "collector/ingest/connection_private.h"

enum { WINDOW_MS = 2000, STUCK_MS = 10000 };

static const struct {
  Tracecollect__V1__Hold code;
  const char *text;
} reasons[] = {
  [TC_HOLD_MEMORY] = { TRACECOLLECT__V1__HOLD__HOLD_MEMORY, "" }, /* counted, not logged */
  [TC_HOLD_TENANT_MEMORY] = { TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_MEMORY,
                              "records of its owner use agents.identity_records_max of memory" },
  [TC_HOLD_TENANT_SHARE] = { TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_SHARE,
                             "its owner sends more generations than its share of the archive's "
                             "work (agents.generations_max)" },
  [TC_HOLD_TENANT_RATE] = { TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_RATE,
                            "its owner sends more generations a second than "
                            "agents.identity_generations_rate" },
  [TC_HOLD_STREAM_RATE] = { TRACECOLLECT__V1__HOLD__HOLD_STREAM_RATE,
                            "it sends more generations a second than "
                            "agents.stream_generations_rate" },
};

static void report_hold(struct connection *c, Tracecollect__V1__Hold why) {
  c->hold = why;
  c->ack_due = true; /* the ACK has it */
  tc__say_ack(c);
}

static void log_hold(struct connection *c, uint64_t window_ms) {
  char who[TC_ESCAPE_MAX + 1];

  tc_log_about(tc_log_subject_of(c->identity), TC_WARN, "agents",
               "peer=%s identity=\"%s\" stream=%" PRIu32 ": held for %" PRIu64 " of %" PRIu64
               " ms: %s",
               c->peer, tc_escape(who, c->identity, strlen(c->identity)), c->ingest.stream,
               c->held_ms, window_ms, reasons[c->held_why].text);
}

static Tracecollect__V1__Hold hold_of(enum tc_shortage why) {
  switch (why) {
  case TC_SHORT_NONE: return TRACECOLLECT__V1__HOLD__HOLD_NONE;
  case TC_SHORT_FREE_MIN:
  case TC_SHORT_SPACE:
  case TC_SHORT_INODES:
  case TC_SHORT_QUOTA: return TRACECOLLECT__V1__HOLD__HOLD_DISK_FULL;
  default: return TRACECOLLECT__V1__HOLD__HOLD_STORE;
  }
}

static Tracecollect__V1__Hold hold_of_store(const struct connection *c, bool of_log) {
  const struct tc_connections_env *env = &c->set->env;

  return env->shortage == NULL ? TRACECOLLECT__V1__HOLD__HOLD_NONE
                               : hold_of(env->shortage(env->shortage_self, of_log));
}

/* Returns why nothing of this stream was acked in the window that ends now. */
static Tracecollect__V1__Hold why_stuck(struct connection *c, uint64_t now) {
  bool all_acked = c->submitted_seq <= c->durable_seq && !tc__waits(c);

  if (all_acked || c->durable_seq != c->moved_seq) {
    c->moved_seq = c->durable_seq;
    c->moved_ms = now;
    return TRACECOLLECT__V1__HOLD__HOLD_NONE;
  }
  Tracecollect__V1__Hold why = hold_of_store(c, true);
  bool for_long = now - c->moved_ms >= STUCK_MS && c->submitted_seq > c->durable_seq;
  return why == TRACECOLLECT__V1__HOLD__HOLD_NONE && for_long ? TRACECOLLECT__V1__HOLD__HOLD_STORE
                                                              : why;
}

/* Returns why the archive is stuck: a full share is then not the agent's fault. */
static Tracecollect__V1__Hold why_archive_stuck(const struct connection *c) {
  Tracecollect__V1__Hold why = hold_of_store(c, false);

  return why == TRACECOLLECT__V1__HOLD__HOLD_NONE ? TRACECOLLECT__V1__HOLD__HOLD_ARCHIVE : why;
}

static void report_window(struct connection *c, uint64_t now, uint64_t window_ms) {
  Tracecollect__V1__Hold why = why_stuck(c, now);
  bool is_held = c->held_ms >= window_ms / 2;
  bool archive_is_stuck = tc_jobs_done() == c->hold_window_jobs;

  if (why != TRACECOLLECT__V1__HOLD__HOLD_NONE) {
    report_hold(c, why);
  } else if (is_held && c->held_why == TC_HOLD_TENANT_SHARE && archive_is_stuck) {
    report_hold(c, why_archive_stuck(c));
  } else if (is_held) {
    if (c->held_why > TC_HOLD_MEMORY) log_hold(c, window_ms);
    report_hold(c, reasons[c->held_why].code);
  }
}

void tc__hold_tick(struct connection *c, uint64_t now) {
  uint64_t window_ms = now - c->hold_window_ms;

  if (window_ms < WINDOW_MS) return;
  if (c->held_from_ms != 0) {
    tc__hold_end(c);
    c->held_from_ms = now;
  }
  if (c->state >= TC__STREAMING) report_window(c, now, window_ms);
  c->held_ms = 0;
  c->hold_window_ms = now;
  c->hold_window_jobs = tc_jobs_done();
}
