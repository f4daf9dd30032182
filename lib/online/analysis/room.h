/* SPDX-License-Identifier: Apache-2.0 */
/* Room that analyses of several streams share. They take turns, and the room stays in the processor's cache, where tables of
 * each stream would not.
 *
 * Memory    from mem: 52 KiB, and what the tally takes (online/window/tally.h).
 * Threads   use each object, and the analyses that share it, from one thread at a time.
 */
#ifndef TO_ANALYSIS_ROOM_H
#define TO_ANALYSIS_ROOM_H

#include "online/spans/sums.h"
#include "online/window/tally.h"

struct to_analysis_room {
  struct to_tally tally;
  struct to_sums_cache sums;
  struct to_spans_slice slice;
};

/* The room is zeroed. */
static inline void to_analysis_room_init(struct to_analysis_room *room, struct tb_mem *mem) {
  to_tally_init(&room->tally, mem);
}
static inline void to_analysis_room_fini(struct to_analysis_room *room) {
  to_tally_fini(&room->tally);
}

#endif
