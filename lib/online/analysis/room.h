/* SPDX-License-Identifier: Apache-2.0 */
/* Room that analyses of several streams share. They take turns, and the room stays in the processor's cache, where tables of
 * each stream would not. Call stacks are stored once for all of them.
 *
 * Memory    from mem: 66 KiB, and what the tally takes (online/window/tally.h). From stacks_mem: what the streams leave to each
 *           other (online/spans/stacks/store.h).
 * Threads   use each object, and the analyses that share it, from one thread at a time.
 */
#ifndef TO_ANALYSIS_ROOM_H
#define TO_ANALYSIS_ROOM_H

#include "online/spans/stacks/store.h"
#include "online/spans/sums.h"
#include "online/window/tally.h"

struct to_analysis_room {
  struct to_tally tally;
  struct to_sums_cache sums;
  struct to_spans_slice slice;
  struct to_stack_store stacks;
};

/* The room is zeroed. */
static inline void to_analysis_room_init(struct to_analysis_room *room, struct tb_mem *mem,
                                         struct tb_mem *stacks_mem) {
  to_tally_init(&room->tally, mem);
  to_stack_store_init(&room->stacks, stacks_mem);
}
static inline void to_analysis_room_fini(struct to_analysis_room *room) {
  to_tally_fini(&room->tally);
}

#endif
