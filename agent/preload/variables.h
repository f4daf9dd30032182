/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of the preload library. TRACEAGENT_CERTS and _INSTANCE, and what TRACEAGENT_SERVER says, are read where
 * every stream is opened (agent/api/forward.c).
 *
 * Errors    false, and `fault` says which variable and why.
 */
#ifndef TA_VARIABLES_H
#define TA_VARIABLES_H

#include <stdbool.h>
#include <stdint.h>

struct ta_variables {
  bool other;      /* TRACEAGENT_ONLY names other programs */
  unsigned traced; /* TRACEAGENT_TRACE, _MALLOC: bit set of enum ta_trace */
  bool forks;      /* TRACEAGENT_FORK */
  bool verbose;    /* TRACEAGENT_VERBOSE */
  uint64_t generation_ms, spool_bytes, version, exit_ms, delay_ms;
  uint64_t stacks, samples; /* TRACEAGENT_STACKS, TRACEAGENT_SAMPLES */
  bool tables;              /* TRACEAGENT_STACK_TABLES */
  int record_signal;        /* TRACEAGENT_RECORD_SIGNAL; 0: none */
  char service[80];         /* TRACEAGENT_SERVICE, or the program's name */
  char fault[200];
};

/* TRACEAGENT_DISABLE=1, or the program has raised rights: it takes no server, keys and folders from its caller. */
bool ta_is_switched_off(void);
/* The objects that are allocated before the session are to be kept in mind. */
bool ta_wants_early_objects(void);
bool ta_variables_read(struct ta_variables *v);

#endif
