/* SPDX-License-Identifier: Apache-2.0 */
/* Types of tasks and of regions, as the program names them: how long those of each type took, by the stack where they
 * began, and what goroutines did in regions meanwhile. Fills in what the reports of both kinds share.
 *
 * Memory    from the mem of the windows: 200 bytes a type and its text (at most TW_STRING_BYTES_MAX), 12 series each; 12 bytes and
 *           a series for a pair of type and stack. At most TO_USER_TYPES_MAX types and sites_max pairs; others have no own row.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the task or region is not counted.
 */
#ifndef TO_ANALYSIS_USER_TYPES_H
#define TO_ANALYSIS_USER_TYPES_H

#include "online/analysis/analysis_state.h"

enum {
  TO_USER_TYPES_MAX = 512,
  TO_USER_OTHER = 0,                   /* types above the limit */
  TO_USER_COUNT = TO_REGION_PARTS + 1, /* number of regions; TO_REGION_PARTS is the assist time */
  TO_USER_TIMES,
};

struct to_user_type {
  struct to_string text; /* a NUL follows */
  uint64_t hash;
  uint32_t all;                 /* series: the sites are its parts */
  uint32_t rest;                /* site of the stacks above the limit */
  uint32_t time[TO_USER_TIMES]; /* series */
};
struct to_user_site {
  uint32_t type, stack, series;
};
struct to_user_types {
  struct to_windows *windows;
  struct tb_arena text;
  struct to_user_type *type;
  struct to_user_site *site;
  size_t types, types_room, sites, sites_room, sites_max;
  struct tb_map by_hash, by_site;
  uint64_t secret;
  uint32_t latency, times;     /* series */
  uint32_t begin_unknown, cut; /* series of those without a latency */
  bool seen;                   /* a task or region has ended */
};

TB_MUST tb_rc to_user_types_init(struct to_user_types *t, struct to_windows *windows,
                                 size_t sites_max);
void to_user_types_fini(struct to_user_types *t); /* accepts a zeroed one */

/* Returns true if begin or end is not in the trace: counted in begin_unknown or cut, not as a latency. */
bool to_user_types_pass_over(struct to_user_types *t, const struct to_span *span);
TB_MUST tb_rc to_user_types_find(struct to_user_types *t, struct to_string text, uint32_t *out);
/* Adds a task or region of this type that began at this stack and has ended in the open slot. */
TB_MUST tb_rc to_user_types_add(struct to_user_types *t, uint32_t type, uint32_t stack, to_ns from,
                                to_ns until);
/* Adds the times of a region of this type that has ended. */
void to_user_types_add_time(struct to_user_types *t, uint32_t type,
                            const struct to_region_time *time, to_ns until);

/* Figures that both reports begin with. */
enum {
  TO_USER_LATENCY,
  TO_USER_OPEN,
  TO_USER_BEGIN_UNKNOWN,
  TO_USER_CUT,
  TO_USER_FIGURES,
};

/* Columns of a table by type. */
enum {
  TO_TYPE,
  TO_TYPE_LATENCY,
  TO_TYPE_OPEN,
  TO_TYPE_TIME,
  TO_TYPE_COLUMNS = TO_TYPE_TIME + TO_USER_TIMES
};
#define TO_TYPE_TIME_FIELD(part, its_name, its_about)                                              \
  [TO_TYPE_TIME + (part)] = { its_name, TO_VALUE_NS, .about = its_about }
#define TO_TYPE_FIELDS                                                                             \
  [TO_TYPE] = { "type", TO_VALUE_TEXT, .about = "As the program names it." },                      \
  [TO_TYPE_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION, .about = "From begin to end." },         \
  [TO_TYPE_OPEN] = { "open", TO_VALUE_COUNT, .about = "Still open.", .over_time = TO_OVER_LAST },  \
  TO_TYPE_TIME_FIELD(TO_PART_RUNNING, "execution_ns", "Goroutines ran."),                          \
  TO_TYPE_TIME_FIELD(TO_PART_RUNNABLE, "sched_wait_ns", "They were runnable."),                    \
  TO_TYPE_TIME_FIELD(TO_PART_SYNC, "sync_ns",                                                      \
                     "They waited for a mutex, a condition or a wait group."),                     \
  TO_TYPE_TIME_FIELD(TO_PART_CHAN, "chan_ns", "They waited for a channel or in a select."),        \
  TO_TYPE_TIME_FIELD(TO_PART_NET, "net_ns", "They waited for the network."),                       \
  TO_TYPE_TIME_FIELD(TO_PART_SLEEP, "sleep_ns", "They slept."),                                    \
  TO_TYPE_TIME_FIELD(TO_PART_WAITING, "block_other_ns",                                            \
                     "They waited for something else, the garbage collector included."),           \
  TO_TYPE_TIME_FIELD(TO_PART_SYSCALL, "syscall_ns", "They were in system calls."),                 \
  TO_TYPE_TIME_FIELD(TO_PART_SYSCALL_NO_P, "syscall_block_ns",                                     \
                     "They were in system calls that had lost their P."),                          \
  TO_TYPE_TIME_FIELD(TO_REGION_PARTS, "gc_assist_ns",                                              \
                     "They were in mark assists; part of the times above."),                       \
  [TO_TYPE_TIME +                                                                                  \
      TO_USER_COUNT] = { "regions", TO_VALUE_COUNT, .about = "Regions counted in these times." }

/* Lengths of time in a forged trace may overflow. */
static inline int64_t to_user_ns(uint64_t ns) {
  return ns < INT64_MAX ? (int64_t)ns : INT64_MAX;
}
static inline int64_t to_user_length(to_ns from, to_ns until) {
  return until > from ? to_user_ns((uint64_t)until - (uint64_t)from) : 0;
}
/* Fills in the figures except TO_USER_OPEN, and the table by type. */
TB_MUST tb_rc to_user_types_report(const struct to_user_types *t, struct to_draft *d,
                                   unsigned table);
/* An open task or region. Reports list the TO_USER_OPEN_MAX oldest ones. */
enum { TO_USER_OPEN_MAX = 256 };
struct to_user_open {
  const struct to_span *span;
  int64_t age_ns;
  struct to_string type;
  const struct to_callstack *stack; /* where it began; NULL: not kept */
};
/* Counts the open ones of a kind, by type and in all, and lists the oldest. none: note for a trace without any. */
TB_MUST tb_rc to_user_types_report_open(const struct to_user_types *t, struct to_analyses *a,
                                        struct to_draft *d, enum to_span_kind kind, unsigned table,
                                        const char *none,
                                        tb_rc (*list)(struct to_draft *d,
                                                      const struct to_user_open *open));

#endif
