/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of the preload library. TRACEAGENT_CERTS and _INSTANCE, and the value of TRACEAGENT_SERVER, are read where
 * every stream is opened (agent/api/forward.c).
 *
 * Errors    false; `fault` names the variable and the reason.
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
  char program[80];         /* its name, before it may write another one for ps */
  char fault[200];
};

/* Returns true with TRACEAGENT_DISABLE=1, or if the program has raised rights: its caller must not choose server, keys and
 * folders. */
bool ta_is_switched_off(void);
/* Returns true if objects allocated before the session are to be stored. */
bool ta_wants_early_objects(void);
bool ta_variables_read(struct ta_variables *v);

#endif
