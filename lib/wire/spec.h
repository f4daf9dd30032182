/* SPDX-License-Identifier: Apache-2.0 */
/* The event table (wire/events.def) as data, and the numbers of the format.
 *
 * The header of a trace has its version: 22, 23, 25 or 26 (a 1.24 program writes 23, a 1.27 program 26). Each version only
 * added events at the end of the table.
 */
#ifndef TW_SPEC_H
#define TW_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_EV(num, ID, ...) TW_EV_##ID = (num),
enum tw_event {
  TW_EV_NONE = 0,
#include "wire/events.def"
  TW_EV_LIMIT
};
#undef TW_EV

enum {
  TW_BATCH_BYTES_MAX = 64 << 10,      /* bytes of a batch without its header */
  TW_BATCH_HEADER_BYTES_MAX = 2 + 40, /* event, experiment, four varints */
  TW_STACK_FRAMES_MAX = 128,
  TW_STRING_BYTES_MAX = 1024,
  TW_TIMED_ARGS_MAX = 4, /* after dt */
};

/* Numbers of statuses on the wire; enum to_go_state and to_proc_state (online) differ. */
enum tw_go_status {
  TW_GO_BAD,
  TW_GO_RUNNABLE,
  TW_GO_RUNNING,
  TW_GO_SYSCALL,
  TW_GO_WAITING,
  TW_GO_STATUSES
};
enum tw_proc_status {
  TW_PROC_BAD,
  TW_PROC_RUNNING,
  TW_PROC_IDLE,
  TW_PROC_SYSCALL,
  TW_PROC_SYSCALL_ABANDONED, /* stolen from a thread that is no longer known */
  TW_PROC_STATUSES
};

enum tw_experiment { TW_EXPERIMENT_NONE, TW_EXPERIMENT_ALLOC_FREE, TW_EXPERIMENTS };

enum tw_kind {
  TW_KIND_NONE,       /* no such event */
  TW_KIND_BATCH,      /* header of a batch */
  TW_KIND_STRUCT,     /* entry of a table; no dt */
  TW_KIND_STACK,      /* as STRUCT, followed by frames */
  TW_KIND_DATA,       /* as STRUCT, followed by a length and bytes */
  TW_KIND_CLOCK,      /* has a dt from its batch's time; in sync batches only */
  TW_KIND_TIMED,      /* has a dt; in a thread's batches */
  TW_KIND_EXPERIMENT, /* as TIMED, of an experiment */
};

enum tw_arg_type {
  TW_ARG_VALUE,
  TW_ARG_M,
  TW_ARG_P,
  TW_ARG_G,
  TW_ARG_SEQ,
  TW_ARG_STACK,
  TW_ARG_STRING,
  TW_ARG_TASK,
  TW_ARG_PSTATUS,
  TW_ARG_GSTATUS,
};

struct tw_arg {
  enum tw_arg_type type;
  const char *label;
};

struct tw_spec {
  const char *name;      /* NULL: no such event */
  struct tw_arg args[5]; /* without dt */
  uint8_t nargs;
  uint8_t since; /* header version */
  uint8_t kind;  /* enum tw_kind */
  uint8_t opens; /* enum tw_event whose range this one ends or restates, TW_EV_NONE: none */
};

/* A row for each value of a byte; unknown events have kind TW_KIND_NONE and no name. */
extern const struct tw_spec tw_specs[UINT8_MAX + 1];

static inline const struct tw_spec *tw_spec(uint8_t type) {
  return &tw_specs[type];
}
/* Finds an event by name; TW_EV_NONE if there is none. */
enum tw_event tw_spec_find(const char *name, size_t len);
/* Returns true if a dt precedes the arguments. */
static inline bool tw_spec_has_dt(const struct tw_spec *spec) {
  return spec->kind >= TW_KIND_CLOCK;
}

/* Returns true for versions that this program reads: 22, 23, 25, 26. */
bool tw_version_known(unsigned version);
/* The first event number that Go's table for this version does not have (what -d=wire refuses). */
unsigned tw_version_events_end(unsigned version);

const char *tw_experiment_name(uint8_t experiment); /* NULL: not known */

#endif
