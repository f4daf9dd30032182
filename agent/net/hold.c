/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/hold.h"

static const uint64_t stays_ns = 5000000000;

static const char *const texts[] = {
  [TRACECOLLECT__V1__HOLD__HOLD_STREAM_RATE] =
      "collector slows this stream down: more generations a second than "
      "agents.stream_generations_rate allows",
  [TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_RATE] =
      "collector slows this certificate name down: more generations a second than "
      "agents.identity_generations_rate allows",
  [TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_SHARE] =
      "collector slows this certificate name down: more generations than its share of the "
      "archive's work (agents.generations_max)",
  [TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_MEMORY] =
      "collector slows this certificate name down: its records take "
      "agents.identity_records_max of memory",
  [TRACECOLLECT__V1__HOLD__HOLD_MEMORY] =
      "collector slows all agents down: their records take agents.records_max of memory",
  [TRACECOLLECT__V1__HOLD__HOLD_DISK_FULL] = "collector stores nothing: its disk is full",
  [TRACECOLLECT__V1__HOLD__HOLD_STORE] = "collector stores nothing: its log says why",
  [TRACECOLLECT__V1__HOLD__HOLD_ARCHIVE] =
      "collector slows all agents down: its archive does not keep up with the disk",
};

const char *ta_hold_note(struct ta_hold *hold, Tracecollect__V1__Hold reason, uint64_t now_ns) {
  unsigned at = (unsigned)reason;

  if (at >= sizeof texts / sizeof texts[0] || texts[at] == NULL) return NULL;
  *hold = (struct ta_hold){ .text = texts[at], .at_ns = now_ns };
  return hold->text;
}

const char *ta_hold_over(struct ta_hold *hold, uint64_t now_ns) {
  const char *text = hold->text;

  if (text == NULL || now_ns < hold->at_ns + stays_ns) return NULL;
  hold->text = NULL;
  return text;
}
