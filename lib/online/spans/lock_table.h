/* SPDX-License-Identifier: Apache-2.0 */
/* The locks that a stream's waits are for, by a number that each keeps for the whole stream.
 *
 * A trace names locks once a generation, by strings (online/event/locks.h). Here a lock is its address: one that is freed, and
 * another at the same place, are one.
 *
 * Memory    from mem: 40 bytes a lock and its name, two places in hash maps; at most TO_LOCK_TABLE_MAX locks, further ones are
 *           TO_LOCK_OTHER. What one generation names, as online/event/locks.h says.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_SPANS_LOCK_TABLE_H
#define TO_SPANS_LOCK_TABLE_H

#include "online/event/locks.h"

enum {
  TO_LOCK_NONE,  /* no lock is known */
  TO_LOCK_OTHER, /* one that is not told apart */
  TO_LOCK_TABLE_MAX = 4096,
  TO_LOCK_NUMBERS = TO_LOCK_TABLE_MAX + 2,
  TO_LOCK_NAME_MAX = 128, /* bytes of a name that are kept */
  TO_LOCK_LABEL_MAX = TO_LOCK_NAME_MAX + 20,
};

struct to_known_lock {
  uint64_t object;
  struct to_string name; /* len 0: not known */
  bool is_namesake;      /* another lock had this name first */
};

struct to_lock_table {
  struct tb_mem *mem;
  struct to_locks here;       /* this generation's */
  struct to_known_lock *lock; /* by number */
  size_t n, room;             /* 0: no generation has named a lock */
  struct tb_map by_object, by_name;
  uint64_t missed; /* waits so far whose lock was not said, because there were too many */
};

void to_lock_table_init(struct to_lock_table *t, struct tb_mem *mem);
void to_lock_table_fini(struct to_lock_table *t); /* accepts a zeroed one */
/* A generation begins. */
TB_MUST tb_rc to_lock_table_generation(struct to_lock_table *t, const struct to_generation *gen);
/* The lock that this string of the generation stands for: TO_LOCK_NONE where it is an ordinary one. out_holder: the
 * thread that held it when the waits began, TO_NONE where that is not known. */
TB_MUST tb_rc to_lock_table_find(struct to_lock_table *t, uint64_t string, uint32_t *out,
                                 int64_t *out_holder);

/* Its name, or its address: "config_lock", "0x55d0c8e011a0"; with both where another lock has the same name. Answers its
 * length; "" of TO_LOCK_NONE, "other" of TO_LOCK_OTHER. */
size_t to_lock_table_label(const struct to_lock_table *t, uint32_t number,
                           char out[TO_LOCK_LABEL_MAX]);

#endif
