/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/trigger/snaps.h"

#include <string.h>

bool tc_waiting_snaps_has(const struct tc_waiting_snaps *orders, const char *rule) {
  for (unsigned i = 0; i < orders->n; i++)
    if (strcmp(orders->order[i].rule, rule) == 0) return true;
  return false;
}

bool tc_waiting_snaps_add(struct tc_waiting_snaps *orders, const struct tc_waiting_snap *order) {
  if (orders->n == TR_RULES_MAX) return false;
  orders->order[orders->n++] = *order;
  return true;
}

bool tc_waiting_snaps_take(struct tc_waiting_snaps *orders, struct tc_waiting_snap *out) {
  if (orders->n == 0) return false;
  *out = orders->order[0];
  orders->n--;
  memmove(&orders->order[0], &orders->order[1], orders->n * sizeof orders->order[0]);
  return true;
}
