/* SPDX-License-Identifier: Apache-2.0 */
/* Snaps that wait to be sent, in order: at most one of a rule.
 *
 * Threads   use each object from one thread at a time.
 */
#ifndef TC_TRIGGER_SNAPS_H
#define TC_TRIGGER_SNAPS_H

#include "proto/names.h"
#include "trigger/rule.h"

struct tc_waiting_snap {
  char rule[TR_NAME_MAX + 1];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1]; /* "": any */
  unsigned char stream[TC_STREAM_BYTES];
  bool of_stream;
  uint64_t last_ns;
};

struct tc_waiting_snaps { /* zeroed: none */
  struct tc_waiting_snap order[TR_RULES_MAX];
  unsigned n;
};

bool tc_waiting_snaps_has(const struct tc_waiting_snaps *orders, const char *rule);
/* The rule must not have one yet. Returns false if there is no room: TR_RULES_MAX rules wait. */
bool tc_waiting_snaps_add(struct tc_waiting_snaps *orders, const struct tc_waiting_snap *order);
/* Takes the oldest; returns false if there is none. */
bool tc_waiting_snaps_take(struct tc_waiting_snaps *orders, struct tc_waiting_snap *out);

#endif
