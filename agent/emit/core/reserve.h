/* SPDX-License-Identifier: Apache-2.0 */
/* A table in address space of its own that never moves and grows by whole steps.
 *
 * Address space for the largest table is reserved once, without memory, so that pointers into the table stay valid.
 * New items are zero and cost memory only when written. In a forked child the whole table is zero again: the kernel does
 * that without copying anything (MADV_WIPEONFORK, Linux 4.14).
 *
 * Memory    address space for max items; if the process cannot have that much, for a half, a quarter, and so on.
 * Threads   grow: one at a time. Items: any.
 * Errors    TB_NOMEM from init if not even min items fit. grow returns false at the table's end.
 */
#ifndef TA_EMIT_CORE_RESERVE_H
#define TA_EMIT_CORE_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

struct ta_reserve {
  unsigned char *bytes;
  size_t item_bytes;
  uint32_t max, usable; /* items */
  bool wiped_on_fork;
};

TB_MUST tb_rc ta_reserve_init(struct ta_reserve *r, size_t item_bytes, uint32_t max, uint32_t min);
void ta_reserve_fini(struct ta_reserve *r); /* accepts zeroed memory */
/* Makes at least n items usable. */
bool ta_reserve_grow(struct ta_reserve *r, uint32_t n);
/* In a forked child: zeroes the items if the kernel has not. */
void ta_reserve_forget(struct ta_reserve *r);

#endif
