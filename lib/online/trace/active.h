/* SPDX-License-Identifier: Apache-2.0 */
/* The goroutines that are active in a generation, found without ordering it: for an index by goroutine.
 *
 *   to_active_clear(&active);
 *   while (...) TB_TRY(to_active_event(&active, &ev));      -- each raw event (wire/raw.h)
 *   if (to_active_has(&active, 22)) ...                     -- order this generation: online/trace/pull.h
 *
 * A goroutine is active if it runs, is in a system call, is created, woken or sampled. A generation also restates all
 * other live goroutines, which only wait.
 *
 * Packed ids are a count, then each id's difference to the previous one in rising order, all as LEB128: one to two bytes
 * a goroutine.
 *
 * Memory    from mem, some 34 bytes a goroutine; 16 more while it is packed.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM from mem.
 */
#ifndef TO_TRACE_ACTIVE_H
#define TO_TRACE_ACTIVE_H

#include "base/buf.h"
#include "base/map.h"
#include "wire/raw.h"

struct to_active {
  struct tb_map ids;
};

void to_active_init(struct to_active *active, struct tb_mem *mem);
void to_active_fini(struct to_active *active); /* accepts a zeroed one */
void to_active_clear(struct to_active *active);

TB_MUST tb_rc to_active_event(struct to_active *active, const struct tw_raw *ev);
bool to_active_has(const struct to_active *active, int64_t goroutine);
static inline size_t to_active_count(const struct to_active *active) {
  return active->ids.count;
}

TB_MUST tb_rc to_active_pack(const struct to_active *active, struct tb_buf *out);

/* Reads packed ids, which a peer may have written: they are checked.
 *
 *   struct to_active_iter it;
 *   to_active_read(&it, bytes, len);
 *   while (to_active_next(&it, &goroutine)) ...             -- it.left > 0 at the end: ids are missing
 */
struct to_active_iter {
  const unsigned char *pos, *end;
  uint64_t left, last;
};
/* Returns false if the count is missing or too large for len bytes. */
bool to_active_read(struct to_active_iter *it, const void *bytes, size_t len);
bool to_active_next(struct to_active_iter *it, int64_t *out_goroutine);

#endif
