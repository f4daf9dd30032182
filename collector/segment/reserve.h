/* SPDX-License-Identifier: Apache-2.0 */
/* Space put by for a full disk: STATE/reserve, allocated and never written.
 *
 * Nothing is acked below disk.free_min, but others fill disks as well. When the archive finds no space for
 * what is acked already, the reserve goes, so that open generations can be sealed and the log let go; it
 * is put by again when there is plenty.
 *
 * Threads   use each object from one thread at a time.
 * Errors    none: what cannot be put by now is tried again at the next call.
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

/* bytes 0: none is wanted, and one of an earlier run goes. */
void tc_reserve_init(struct tc_reserve *reserve, int state_fd, uint64_t bytes);
/* Puts by what is missing, if more than least stays free, and an eighth of it beside. */
void tc_reserve_fill(struct tc_reserve *reserve, uint64_t free_bytes, uint64_t least);
bool tc_reserve_release(struct tc_reserve *reserve); /* false: there is none */

#endif
