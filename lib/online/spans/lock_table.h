/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a stream's waits, each with a number that is fixed for the whole stream.
 *
 * A trace names locks in each generation, by strings (online/event/locks.h). Here a lock is identified by its address: if
 * it is freed, a later lock at the same address counts as the same lock.
 *
 * Memory    from mem: 40 bytes a lock and its name, two places in hash maps; at most TO_LOCK_TABLE_MAX locks, further ones are
 *           TO_LOCK_OTHER. For the locks of one generation see online/event/locks.h.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_SPANS_LOCK_TABLE_H
#define TO_SPANS_LOCK_TABLE_H

#include "online/event/locks.h"

enum {
  TO_LOCK_NONE,  /* no known lock */
  TO_LOCK_OTHER, /* a lock above the limit */
  TO_LOCK_TABLE_MAX = 4096,
  TO_LOCK_NUMBERS = TO_LOCK_TABLE_MAX + 2,
  TO_LOCK_NAME_MAX = 128, /* longer names are truncated */
  TO_LOCK_LABEL_MAX = TO_LOCK_NAME_MAX + 20,
};

struct to_known_lock {
  uint64_t object;
  struct to_string name; /* len 0: unknown */
  bool is_namesake;      /* another lock had this name first */
};

struct to_lock_table {
  struct tb_mem *mem;
  struct to_locks here;       /* this generation's locks */
  struct to_known_lock *lock; /* by number */
  size_t n, room;             /* 0: no generation has named a lock */
  struct tb_map by_object, by_name;
  uint64_t missed; /* waits without a lock so far, because the generation could not name all */
};

void to_lock_table_init(struct to_lock_table *t, struct tb_mem *mem);
void to_lock_table_fini(struct to_lock_table *t); /* accepts a zeroed one */
/* Begins a generation. */
TB_MUST tb_rc to_lock_table_generation(struct to_lock_table *t, const struct to_generation *gen);
/* Finds the lock of a string of the generation, or TO_LOCK_NONE. out_holder: its thread then, or TO_NONE. */
TB_MUST tb_rc to_lock_table_find(struct to_lock_table *t, uint64_t string, uint32_t *out,
                                 int64_t *out_holder);

/* Writes a lock's name or address: "config_lock", "0x55d0c8e011a0"; both if another lock has the same name; "" for
 * TO_LOCK_NONE, "other" for TO_LOCK_OTHER. Returns the length. */
size_t to_lock_table_label(const struct to_lock_table *t, uint32_t number,
                           char out[TO_LOCK_LABEL_MAX]);

#endif
