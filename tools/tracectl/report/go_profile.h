/* SPDX-License-Identifier: Apache-2.0 */
/* System calls by stack as `go tool trace -pprof=syscall` counts them.
 *
 * That tool looks at each goroutine from when it was first seen running to its end, and knows one
 * life of each goroutine id. So it leaves out a call that began before the trace if its goroutine
 * ran later, the first call of a goroutine that a cgo callback made, and all calls of an id's
 * earlier lives. A report has them; a profile that is to be equal has not.
 *
 * Memory    from mem: an entry for each goroutine with each of its stacks.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TK_REPORT_GO_PROFILE_H
#define TK_REPORT_GO_PROFILE_H

#include "base/arena.h"
#include "base/map.h"
#include "proto/report.pb-c.h"
#include "spans/stack_table.h"

struct tk_go_profile {
  struct tb_arena arena;
  struct to_stack_table stacks;
  struct tb_map goroutines, entries, calls; /* by id; by goroutine and stack; by thread */
};

void tk_go_profile_init(struct tk_go_profile *p, struct tb_mem *mem);
void tk_go_profile_fini(struct tk_go_profile *p);
TB_MUST tb_rc tk_go_profile_events(struct tk_go_profile *p, const struct to_generation *gen,
                                   const struct to_event *events, size_t n);

/* The table and the distribution in it that `go tool trace -pprof=KIND` shows. False: it has no such profile. */
bool tk_go_profile_find(const char *kind, const char **out_table, const char **out_measure);

/* Another report with these figures in the rows of that table: rows without a call are left out. It lives in arena
 * and lends the rest from report. */
TB_MUST tb_rc tk_go_profile_report(const struct tk_go_profile *p,
                                   const Tracecollect__V1__StreamReport *report,
                                   struct tb_arena *arena, Tracecollect__V1__StreamReport **out);

#endif
