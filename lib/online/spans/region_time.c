/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what goroutines do in regions. Only the innermost counts; the outer one gets its times when it ends. */
#include "online/spans/state.h"

enum { AROUND_MAX = 64 };

static enum to_region_part part_of_wait(const struct to_reason_info *reason) {
  static const enum to_region_part parts[TO_WAIT_CLASSES] = {
    [TO_WAIT_OTHER] = TO_PART_WAITING, [TO_WAIT_SYNC] = TO_PART_SYNC,
    [TO_WAIT_CHAN] = TO_PART_CHAN,     [TO_WAIT_NET] = TO_PART_NET,
    [TO_WAIT_SLEEP] = TO_PART_SLEEP,   [TO_WAIT_GC] = TO_PART_WAITING,
  };

  return parts[reason->wait_class];
}

static enum to_region_part part_of(const struct to_spans *s, const struct to_life *g,
                                   unsigned state) {
  switch (state) {
  case TO_GO_RUNNING: return TO_PART_RUNNING;
  case TO_GO_RUNNABLE: return TO_PART_RUNNABLE;
  case TO_GO_SYSCALL: return g->without_p ? TO_PART_SYSCALL_NO_P : TO_PART_SYSCALL;
  default: return part_of_wait(to_spans_reason(s, g->reason));
  }
}

/* Returns the goroutine's innermost region; NULL: none is open. */
static struct to_open_region *innermost(const struct to_spans *s, const struct to_life *g) {
  return (g->more & TO_MORE_REGIONS) == 0 ? NULL : tb_map_at(&s->regions, (uint64_t)(g - s->lives));
}

void to__region_counts(struct to_spans *s, const struct to_life *g, unsigned state, to_ns now) {
  struct to_open_region *region = innermost(s, g);

  if (region == NULL) return;
  region->time.ns[part_of(s, g, state)] += (uint64_t)now - (uint64_t)region->counted_until;
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

/* No region begins or ends within an assist, which is runtime code. */
void to__region_assists(struct to_spans *s, const struct to_event *ev) {
  const struct to_life *g = to__wants(s, TO_WANT(REGION)) ? to__spans_context(s, ev) : NULL;
  struct to_open_region *region = g == NULL ? NULL : innermost(s, g);

  if (region == NULL) return;
  if (region->assists && ev->type == TW_EV_GC_MARK_ASSIST_END)
    region->time.assist_ns += (uint64_t)ev->time - (uint64_t)region->assists_since;
  region->assists = ev->type == TW_EV_GC_MARK_ASSIST_BEGIN;
  region->assists_since = ev->time;
}

bool to__region_in_its_task(const struct to_open_region *region) {
  const struct to_open_region *around = region->below;

  for (unsigned n = 0; around != NULL && n < AROUND_MAX; n++, around = around->below)
    if (around->task == region->task) return false;
  return true;
}
