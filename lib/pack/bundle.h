/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered events as a packed EventBundle (proto/archive.proto), without number and loss: the lease's window writes them
 * before these bytes, which protobuf allows.
 *
 *   tp_bundle_begin(b, gen, &about);
 *   while (...) tp_bundle_add(b, gen, ev, position, &lasted);
 *   send(tp_bundle_bytes(b)); tp_bundle_write(b, place);
 *
 * Strings, frames, stacks and type names are written when the first event of the bundle refers to them.
 *
 * Memory    from mem: the bundle and its tables; buffers are reused until fini.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the event was not added; the bundle is still valid.
 */
#ifndef TP_PACK_BUNDLE_H
#define TP_PACK_BUNDLE_H

#include "base/buf.h"
#include "base/map.h"
#include "online/analysis/durations.h"
#include "online/event/allocfree.h"
#include "online/event/generation.h"

/* The stream of the events. */
struct tp_bundle_about {
  const unsigned char *stream; /* 16 bytes */
  const char *service, *instance;
  to_ns clock_trace_ns;   /* used if the generation has no clock of its own */
  uint64_t clock_wall_ns; /* 0: unknown */
};

struct tp_bundle {
  struct tb_mem *mem;
  struct tb_buf
      tables; /* the bundle's head, and strings, frames, stacks and types in order of first use */
  struct tb_buf events;
  struct tb_map strings; /* index by address of the text */
  struct tb_map frames;  /* index by program counter */
  struct tb_map stacks;  /* index by id */
  uint32_t n_strings, n_frames, n_stacks;
  uint64_t count; /* events */
  uint64_t types[4];
  struct to_allocfree heap; /* heap types; names are lent from the generation */
  bool heap_known;          /* heap was read for this bundle */
};

void tp_bundle_init(struct tp_bundle *b, struct tb_mem *mem);
void tp_bundle_fini(struct tp_bundle *b); /* accepts a zeroed one */

TB_MUST tb_rc tp_bundle_begin(struct tp_bundle *b, const struct to_generation *gen,
                              const struct tp_bundle_about *about);
TB_MUST tb_rc tp_bundle_add(struct tp_bundle *b, const struct to_generation *gen,
                            const struct to_event *ev, uint64_t position,
                            const struct to_duration *lasted);
/* Size of the message so far; tp_bundle_write() copies the message. */
static inline size_t tp_bundle_bytes(const struct tp_bundle *b) {
  return b->tables.len + b->events.len;
}
void tp_bundle_write(const struct tp_bundle *b, void *out);

#endif
