/* SPDX-License-Identifier: Apache-2.0 */
/* A table in address space of its own that never moves and grows by whole steps.
 *
 * Addresses for the largest table are reserved once, without memory behind them, so that a pointer into the table stays
 * valid. Memory that has grown is zero until it is written, and costs memory only then. In a forked child all of it
 * is zero again: the kernel does that without copying anything (MADV_WIPEONFORK, Linux 4.14), and the child can see it.
 *
 * Memory    address space of max items; where the process may not have that much, a half, a quarter, and so on.
 * Threads   grow: one at a time. Items: any.
 * Errors    TB_NOMEM from init where not even min items fit. grow answers false at the table's end.
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
/* From here on at least n items are usable. */
bool ta_reserve_grow(struct ta_reserve *r, uint32_t n);
/* In a forked child: items are zero, also where the kernel has not seen to it. */
void ta_reserve_forget(struct ta_reserve *r);

#endif
