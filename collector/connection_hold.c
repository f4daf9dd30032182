/* SPDX-License-Identifier: Apache-2.0 */
/* Which connection is held by a limit of its own or of its tenant's, and for how much of the time. A short hold is how the
 * limits work; one that lasts half of the time is news for the agent and for the operator. */
#include <inttypes.h>
#include <string.h>

#include "collector/connection_private.h"
#include "collector/journal.h"

enum { WINDOW_MS = 2000 };

static const struct {
  Tracecollect__V1__Hold code;
  const char *text;
} reasons[] = {
  [TC_HOLD_TENANT_MEMORY] = { TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_MEMORY,
                              "records of its name take agents.identity_records_max of memory" },
  [TC_HOLD_TENANT_SHARE] = { TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_SHARE,
                             "its name sends more generations than its share of the archive's "
                             "work (agents.generations_max)" },
  [TC_HOLD_TENANT_RATE] = { TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_RATE,
                            "its name sends more generations a second than "
                            "agents.identity_generations_rate" },
  [TC_HOLD_STREAM_RATE] = { TRACECOLLECT__V1__HOLD__HOLD_STREAM_RATE,
                            "it sends more generations a second than "
                            "agents.stream_generations_rate" },
};

void tc__hold_begin(struct connection *c) {
  bool is_limited = c->ingest.hold > TC_HOLD_MEMORY;

  c->held_from_ms = is_limited ? tc__now_ms(c->set) : 0;
  if (is_limited) c->held_why = c->ingest.hold;
}

void tc__hold_end(struct connection *c) {
  if (c->held_from_ms != 0) c->held_ms += tc__now_ms(c->set) - c->held_from_ms;
}

static void say(struct connection *c, uint64_t window_ms) {
  char who[TC_ESCAPE_MAX + 1];

  c->hold = reasons[c->held_why].code;
  c->ack_due = true; /* it tells the agent */
  tc_log_about(tc_log_subject_of(c->identity), TC_WARN, "agents",
               "peer=%s identity=\"%s\" stream=%" PRIu32 ": held for %" PRIu64 " of %" PRIu64
               " ms: %s",
               c->peer, tc_escape(who, c->identity, strlen(c->identity)), c->ingest.stream,
               c->held_ms, window_ms, reasons[c->held_why].text);
  tc__say_ack(c);
}

/* Where the archive stands still, its share is no fault of the agent's; the store's own lines say why. */
static bool is_its_own(const struct connection *c) {
  return c->held_why != TC_HOLD_TENANT_SHARE || tc_jobs_done() != c->hold_window_jobs;
}

void tc__hold_tick(struct connection *c, uint64_t now) {
  uint64_t window_ms = now - c->hold_window_ms;

  if (window_ms < WINDOW_MS) return;
  if (c->waiting && c->held_from_ms != 0) {
    tc__hold_end(c);
    c->held_from_ms = now;
  }
  if (c->held_ms >= window_ms / 2 && is_its_own(c)) say(c, window_ms);
  c->held_ms = 0;
  c->hold_window_ms = now;
  c->hold_window_jobs = tc_jobs_done();
}
