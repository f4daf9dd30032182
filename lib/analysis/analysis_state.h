/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the analyses, and how one is written: private to this room.
 *
 * An analysis counts spans into series of the shared windows, names stacks by index in the shared
 * table, and fills its part of a report from a view. It sees the events of its mask only.
 */
#ifndef TO_ANALYSIS_ANALYSIS_STATE_H
#define TO_ANALYSIS_ANALYSIS_STATE_H

#include "analysis/analysis.h"
#include "analysis/stack_table.h"
#include "analysis/window.h"
#include "base/arena.h"
#include "wire/spec.h"

/* A thread's call: kept after its end, for the next one. */
struct to_call {
  int64_t m, g; /* m == TO_NONE: a free place */
  to_ns begin;
  uint32_t row, stack; /* row: the series of its calls; the next one is for the blocked ones */
  bool open, lost_proc, lower_bound;
  bool reported; /* as being long */
};

struct to_syscall {
  uint32_t born, died; /* series */
  unsigned calls_hist, blocked_hist;
  struct to_call *call; /* by thread: multiplicative hash, linear probing */
  size_t places, threads, open;
  uint64_t multiplier;
  struct to_call *last; /* the one found last: a thread's events come in runs */
  uint32_t *row_of;     /* by stack: the series of its calls, or 0 */
  size_t row_of_len;
};

enum { TO_STW_OPEN_MAX = 16, TO_STW_REASONS_MAX = 48, TO_STW_STOPPERS_MAX = 1024 };

struct to_stw_kind { /* a reason */
  struct to_string text;
  const char *id;
  uint32_t series;
  unsigned hist;
  uint64_t open;
};
struct to_stw_who { /* a goroutine with a reason */
  int64_t g;
  uint32_t kind, series;
  to_ns last;
};
struct to_stw_stop {
  int64_t g;
  to_ns begin;
  uint32_t kind, stack;
  int64_t own_procs; /* 1: the stopper has a P of its own, which goes on running */
  bool stopping;     /* other Ps run still */
};

struct to_stw {
  uint32_t stopped, time_to_stop; /* series */
  unsigned stopped_hist, time_to_stop_hist;
  struct tb_arena text;
  struct to_stw_kind kind[TO_STW_REASONS_MAX + 1]; /* the last one: all further reasons */
  size_t kinds;
  struct to_stw_who who[TO_STW_STOPPERS_MAX];
  size_t whos;
  struct tb_map who_of; /* goroutine and reason: place in who */
  uint32_t who_other;   /* series */
  to_ns retired;        /* when rows were last looked through for old ones */
  struct to_stw_stop stop[TO_STW_OPEN_MAX];
  size_t stops;
  int64_t running;  /* Ps that run or are held by a thread in a call */
  unsigned syncs;   /* in this epoch */
  bool procs_known; /* running counts every P */
};

struct to_analyses {
  struct tb_mem *mem;
  struct to_analysis_config config;
  struct to_watch watch; /* span NULL: no thread */
  struct to_windows windows;
  struct to_stack_table stacks;
  struct to_syscall syscall;
  struct to_stw stw;
  struct tb_arena report_arena;
  struct to_report report;
  uint64_t gen, epochs;
  bool in_epoch;
  bool has_clock;
  to_ns clock_trace_ns;
  uint64_t clock_wall_ns;
};

struct to_analysis_ops {
  uint64_t events; /* bits of enum tw_event below 64 */
  tb_rc (*init)(struct to_analyses *a);
  void (*fini)(struct to_analyses *a);
  tb_rc (*event)(struct to_analyses *a, const struct to_generation *gen, const struct to_event *ev);
  void (*epoch)(struct to_analyses *a);
  tb_rc (*report)(struct to_analyses *a, const struct to_view *view, size_t rows_max);
};
#define TO_ANALYSIS_EVENT(ID) (UINT64_C(1) << TW_EV_##ID)

void to__sum_join(struct to_sum *into, const struct to_sum *from);

#define TO_ANALYSIS(ID, name, about) extern const struct to_analysis_ops to__analysis_##name;
#include "analysis/analyses.def"
#undef TO_ANALYSIS

#endif
