/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved space for a full disk: STATE/reserve, allocated and never written.
 *
 * Nothing is acked below disk.free_min, but other programs fill disks, too. If there is no space for acked records, the
 * reserve is released, so that open generations can be sealed and the log deleted. It is filled again when there is
 * enough space.
 *
 * Threads   use each object from one thread at a time.
 * Errors    none: the next call tries again.
 */
#ifndef TC_SEGMENT_RESERVE_H
#define TC_SEGMENT_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

struct tc_reserve {
  int state_fd; /* the state folder, borrowed */
  uint64_t bytes;
  bool held;
};

/* bytes 0: no reserve; an existing one is deleted. */
void tc_reserve_init(struct tc_reserve *reserve, int state_fd, uint64_t bytes);
/* Allocates the reserve if at least 9/8 of `least` bytes are free afterwards. */
void tc_reserve_fill(struct tc_reserve *reserve, uint64_t free_bytes, uint64_t least);
bool tc_reserve_release(struct tc_reserve *reserve); /* returns false if there is none */

#endif
