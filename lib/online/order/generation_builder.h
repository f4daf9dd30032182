/* SPDX-License-Identifier: Apache-2.0 */
/* Turns bytes into generations; the first half of reading, before events are ordered.
 *
 * The caller passes an empty generation, and gets it back complete: tables read and cross-checked. A generation
 * ends at the same byte as in Go's reader, and the same faults are ignored (a table entry cut off exactly at the end of its
 * batch ends the trace without an error).
 *
 * Memory    at most two batches, from mem. Batches whose bytes do not outlive the call are copied.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BROKEN, TB_UNSUPPORTED, TB_BUDGET, TB_NOMEM; after an error call only begin or fini.
 */
#ifndef TO_ORDER_GENERATION_BUILDER_H
#define TO_ORDER_GENERATION_BUILDER_H

#include "online/event/tables.h"
#include "wire/split.h"

struct to_builder {
  struct tb_mem *mem;
  uint64_t generation_bytes_max; /* 0: no limit */
  bool bytes_stay;               /* bytes fed need no copy */
  bool ended;                    /* finish() was called */
  bool any_generation;
  bool headless;    /* the fault is in the header: Go's reader delivers no Sync before it */
  unsigned version; /* 0: no header yet */
  tb_rc late_rc;    /* a fault after this generation, reported after the generation */
  struct tb_diag late_diag;
  struct tw_split split;

  /* Before 1.26: the first batch of the next generation. */
  bool spilled;
  struct tw_batch spill;
  uint64_t spill_offset;
  unsigned char *spill_bytes; /* copy of the batch, if it does not stay */
};

void to__builder_init(struct to_builder *builder, struct tb_mem *mem, bool bytes_stay,
                      uint64_t generation_bytes_max);
void to__builder_fini(struct to_builder *builder);
/* Expects the next file of the same stream, from its header on. */
void to__builder_begin(struct to_builder *builder);

/* All three return TB_OK if more bytes are needed; TB_AGAIN if gen is complete: continue with to__builder_next(); TB_END
 * at the end of the trace, further bytes are ignored. feed() stops after the batch with which *out_used reaches
 * `enough`. */
TB_MUST tb_rc to__builder_feed(struct to_builder *builder, struct to_generation *gen,
                               struct tb_diag *diag, const void *bytes, size_t n, size_t enough,
                               size_t *out_used);
/* Call after the last byte. */
TB_MUST tb_rc to__builder_finish(struct to_builder *builder, struct to_generation *gen,
                                 struct tb_diag *diag);
/* Call after TB_AGAIN: begins the next generation, gen, with a batch left over from the previous one. */
TB_MUST tb_rc to__builder_next(struct to_builder *builder, struct to_generation *gen,
                               struct tb_diag *diag);

#endif
