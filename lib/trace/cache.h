/* SPDX-License-Identifier: Apache-2.0 */
/* Generations of a stored trace in any order: each is ordered once and kept as long as there is room.
 *
 *   to_cache_new(&mem, trace, header, places, n, &cache)     -- mem.bytes_max is the room
 *   if (to_cache_borrow(cache, i, &diag, &part) == TB_OK) {
 *     for (size_t k = 0; k < part.count; k++) look_at(part.gen, &part.events[k]);
 *     to_cache_return(cache, i);
 *   }
 *
 * A caller that pages through a trace, forth and back, borrows the generation at hand and its neighbours; where
 * room is short, the one that was borrowed longest ago and is not borrowed now goes, tables and all.
 * Where the first event matters more than all of them, pull the part instead (trace/pull.h, to_part).
 *
 * A generation is ordered as a trace of its own: what it restates of the goroutines before it comes out of
 * state Undetermined.
 *
 * Memory    all from mem: about 80 bytes an event beside the generation's tables, 160 a place. The trace stays
 *           where it is, unchanged, until the cache is freed (a mapping).
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET: the generation alone, or beside those that are borrowed, is larger than the room.
 *           TB_NOMEM; what the reader says of a broken generation. Nothing is kept then.
 */
#ifndef TO_TRACE_CACHE_H
#define TO_TRACE_CACHE_H

#include "event/generation.h"
#include "trace/reader.h"

struct to_place { /* of a generation in the trace, as an index has it */
  uint64_t offset, bytes;
};

struct to_ordered { /* valid until it is given back */
  const struct to_generation *gen;
  const struct to_event *events; /* its Sync first */
  size_t count;
};

struct to_cache;

/* header: bytes of the trace's header. places are copied. */
TB_MUST tb_rc to_cache_new(struct tb_mem *mem, const void *trace, size_t header,
                           const struct to_place *places, size_t n, struct to_cache **out);
void to_cache_free(struct to_cache *cache); /* accepts NULL */

/* The i-th place, counted from 0. May be borrowed several times, each to be returned. */
TB_MUST tb_rc to_cache_borrow(struct to_cache *cache, size_t i, struct tb_diag *diag,
                              struct to_ordered *out);
void to_cache_return(struct to_cache *cache, size_t i);
size_t to_cache_kept(const struct to_cache *cache); /* generations in memory now */

#endif
