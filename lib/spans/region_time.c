/* SPDX-License-Identifier: Apache-2.0 */
/* What goroutines do while regions are open on them. Only the innermost one counts; where it ends, the one around it takes over what
 * it has. */
#include "spans/state.h"

enum { AROUND_MAX = 64 };

static enum to_region_part part_of_wait(enum to_reason reason) {
  switch (reason) {
  case TO_REASON_SYNC:
  case TO_REASON_SYNC_COND: return TO_PART_SYNC;
  case TO_REASON_CHAN_SEND:
  case TO_REASON_CHAN_RECEIVE:
  case TO_REASON_SELECT: return TO_PART_CHAN;
  case TO_REASON_NETWORK: return TO_PART_NET;
  case TO_REASON_SLEEP: return TO_PART_SLEEP;
  default: return TO_PART_WAITING;
  }
}

static enum to_region_part part_of(const struct to_life *g, unsigned state) {
  switch (state) {
  case TO_GO_RUNNING: return TO_PART_RUNNING;
  case TO_GO_RUNNABLE: return TO_PART_RUNNABLE;
  case TO_GO_SYSCALL: return g->without_p ? TO_PART_SYSCALL_NO_P : TO_PART_SYSCALL;
  default: return part_of_wait((enum to_reason)g->reason);
  }
}

void to__region_counts(struct to_spans *s, const struct to_life *g, unsigned state, to_ns now) {
  struct to_open_region *region =
      (g->more & TO_MORE_REGIONS) == 0 ? NULL : tb_map_at(&s->regions, (uint64_t)(g - s->lives));

  if (region == NULL) return;
  region->time.ns[part_of(g, state)] += (uint64_t)now - (uint64_t)region->counted_until;
  region->counted_until = now;
}

void to__region_joins(struct to_open_region *region, to_ns now) {
  struct to_open_region *around = region->below;

  if (around == NULL) return;
  for (unsigned part = 0; part < TO_REGION_PARTS; part++)
    around->time.ns[part] += region->time.ns[part];
  around->time.assist_ns += region->time.assist_ns;
  around->counted_until = now;
}

void to__region_assists(struct to_spans *s, const struct to_life *g, to_ns from, to_ns until) {
  struct to_open_region *region = g == NULL || (g->more & TO_MORE_REGIONS) == 0
                                      ? NULL
                                      : tb_map_at(&s->regions, (uint64_t)(g - s->lives));

  if (region == NULL) return;
  if (from < region->since) from = region->since;
  region->time.assist_ns += (uint64_t)until - (uint64_t)from;
}

bool to__region_in_its_task(const struct to_open_region *region) {
  const struct to_open_region *around = region->below;

  for (unsigned n = 0; around != NULL && n < AROUND_MAX; n++, around = around->below)
    if (around->task == region->task) return false;
  return true;
}
