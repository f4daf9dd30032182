/* SPDX-License-Identifier: Apache-2.0 */
/* Names: short texts that are used repeatedly, as small numbers for events.
 *
 * A name lives as long as the process; its number is also the id of its string and of its one-frame stack in every
 * generation. A generation contains only names that were used in it: each use stamps the name with the generation, in
 * one of two places by the generation's parity, so that the flusher can write the tables of the generation that ends
 * while threads are in the next. Once stamped, a name is only read, so its cache line is not passed between cores.
 *
 * Memory    static: 4096 names, 256 KiB of text.
 * Threads   any.
 * Errors    no room, or an unknown name: 0, the empty text.
 */
#ifndef TA_EMIT_CORE_NAMES_H
#define TA_EMIT_CORE_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/mark.h"

enum { TA_NAMES_MAX = 4096, TA_NAMES_BYTES = 256 << 10 };

/* Names that are always there, in this order; the waits first (enum ta_wait_reason). The last one marks every generation as
 * that of a C program (wire/mark.h). Go's tools take a reason with "sync" in it for a lock, and "network" for a socket. */
#define TA_OWN_NAMES(X)                                                                            \
  X(WAIT_MUTEX, "sync")                                                                            \
  X(WAIT_COND, "sync (condition)")                                                                 \
  X(WAIT_JOIN, "sync (join)")                                                                      \
  X(WAIT_SLEEP, "sleep")                                                                           \
  X(WAIT_POLL, "network (poll)")                                                                   \
  X(WAIT_NETWORK, "network")                                                                       \
  X(FIBER, "coroutine")                                                                            \
  X(AGENT, "traceagent")                                                                           \
  X(MARK, TW_C_MARK)

#define TA_OWN_NAME(id, text) TA_NAME_##id,
enum ta_own_name { TA_NAME_NONE, TA_OWN_NAMES(TA_OWN_NAME) TA_NAME_OWN_END };
#undef TA_OWN_NAME

enum ta_name_use { TA_AS_STRING, TA_AS_STACK, TA_NAME_USES };

struct ta_name_row {
  _Atomic uint32_t used[2][TA_NAME_USES]; /* by parity: the generation */
  uint32_t at;                            /* offset of its text */
  uint16_t len;
};

extern struct ta_name_row ta_names[TA_NAMES_MAX];
extern _Atomic uint32_t
    ta_names_end; /* numbers below are in use; 0: TA_OWN_NAMES are not made yet */

uint32_t ta_names_find(const char *text, size_t len); /* finds or makes a name */
const char *ta_names_text(uint32_t name, size_t *out_len);
/* A name made of a code address, shown as the function there once that is looked up; function() returns the address, or
 * 0 for another name. */
uint32_t ta_names_of_function(const void *pc);
uint64_t ta_names_function(uint32_t name);
/* Held around fork(): the child keeps the same names. */
void ta_names_lock(void);
void ta_names_unlock(void);

/* Returns 0 for a number that is not a name. */
static inline uint32_t ta_name_known(uint32_t name) {
  return name < atomic_load_explicit(&ta_names_end, memory_order_acquire) ? name : 0;
}

/* Stamps a known name as used in gen and returns the id of its string or stack. A thread that was left behind in an old
 * generation does not overwrite a newer stamp. */
static inline uint64_t ta_name_id(uint32_t name, uint32_t gen, enum ta_name_use use) {
  _Atomic uint32_t *used = &ta_names[name].used[gen & 1][use];
  uint32_t was = atomic_load_explicit(used, memory_order_relaxed);
  while (was < gen && !atomic_compare_exchange_weak_explicit(used, &was, gen, memory_order_relaxed,
                                                             memory_order_relaxed))
    ;
  return name;
}

static inline bool ta_name_used(uint32_t name, uint32_t gen, enum ta_name_use use) {
  return atomic_load_explicit(&ta_names[name].used[gen & 1][use], memory_order_relaxed) == gen;
}

#endif
