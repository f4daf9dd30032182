/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles of `go tool trace -pprof=KIND`: the time of goroutines in one state, by stack.
 *
 * A wait begins with the event that puts a goroutine into the state, for a reason of the kind, and counts for that
 * event's own stack: for sched the stack that made the goroutine runnable, otherwise the one that waits. Go follows a
 * goroutine from when it is first seen running to its end, and knows one life of each goroutine id. It leaves out
 * what precedes the first run (the wait of a new goroutine, a call that began before the trace, the first call of a
 * goroutine made by a cgo callback), all earlier lives of an id, and waits without length or end. If the last life of an
 * id never ran, everything counts. Reports count differently; a profile that must equal Go's is computed here.
 *
 * Memory    from mem: an entry for each goroutine with each of its stacks.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TK_PROFILES_GO_PROFILE_H
#define TK_PROFILES_GO_PROFILE_H

#include "base/arena.h"
#include "base/map.h"
#include "online/event/view.h"
#include "online/spans/stacks/table.h"
#include "proto/report.pb-c.h"
#include "tools/tracectl/profiles/pprof.h"

struct tk_go_kind {
  const char *name;               /* of Go's profile, and of the report */
  const char *table, *measure;    /* the nearest ones, for a collector's streams; NULL: none */
  uint8_t state;                  /* enum to_go_state */
  bool (*is)(struct to_string s); /* returns true for a reason of the kind; NULL: any */
};
/* Returns NULL if Go has no such profile. */
const struct tk_go_kind *tk_go_kind_find(const char *name);

struct tk_go_profile {
  const struct tk_go_kind *kind;
  struct tb_arena arena;
  struct to_stack_table stacks;
  struct tb_map goroutines, entries; /* by id; by goroutine and stack */
  uint64_t waits;                    /* ended so far */
};

void tk_go_profile_init(struct tk_go_profile *p, const struct tk_go_kind *kind, struct tb_mem *mem);
void tk_go_profile_fini(struct tk_go_profile *p);
TB_MUST tb_rc tk_go_profile_events(struct tk_go_profile *p, const struct to_generation *gen,
                                   const struct to_event *events, size_t n);

/* Makes a report of one table in arena: a row for each stack. tk_pprof_write() needs it with the fields that
 * tk_go_profile_ask() sets. */
TB_MUST tb_rc tk_go_profile_report(const struct tk_go_profile *p, struct tb_arena *arena,
                                   Tracecollect__V1__StreamReport **out);
TB_MUST tb_rc tk_go_profile_ask(struct tb_arena *arena, struct tk_pprof_ask *out);

#endif
