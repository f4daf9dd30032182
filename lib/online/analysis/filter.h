/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of events by kind (online/event/kinds.def), goroutine and shortest duration (online/analysis/durations.h).
 *
 * A zeroed filter selects nothing; to_filter_all() makes one that selects everything. */
#ifndef TO_ANALYSIS_FILTER_H
#define TO_ANALYSIS_FILTER_H

#include "online/analysis/durations.h"

struct to_filter {
  uint64_t types[4];    /* a bit for each event */
  int64_t goroutine;    /* TO_NONE: any */
  uint64_t duration_ns; /* 0: any */
};

void to_filter_all(struct to_filter *filter);
void to_filter_none(struct to_filter *filter);
/* Adds a kind, or an event by its own name. Returns false if neither has this name. */
bool to_filter_add(struct to_filter *filter, const char *kind);

/* Returns true if the goroutine emitted the event, or the event's first argument is the goroutine. */
bool to_event_concerns(const struct to_event *ev, int64_t goroutine);

static inline bool to_filter_fits(const struct to_filter *f, const struct to_event *ev,
                                  const struct to_duration *lasted) {
  if ((f->types[ev->type >> 6] >> (ev->type & 63) & 1) == 0) return false;
  if (f->duration_ns != 0 && (!lasted->known || lasted->ns < f->duration_ns)) return false;
  return f->goroutine == TO_NONE || to_event_concerns(ev, f->goroutine);
}

struct to_kind {
  const char *name, *about;
  const uint8_t *types; /* enum tw_event, ended by 0; TW_OWN_EVENT_FIRST: it and all above */
};
extern const struct to_kind to_kinds[];
extern const size_t to_kinds_count;

#endif
