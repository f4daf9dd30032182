/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to generations: the half of reading that knows no order.
 *
 * A generation comes as one that is empty and leaves complete, tables read and cross-checked. It follows the
 * state of Go's reader: which bytes end a generation, and where a fault is overlooked (a table entry cut off
 * at just the end of its batch ends the trace in peace).
 *
 * Memory    its own, from mem: at most two batches. Batches that do not stay are copied into the generation.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BROKEN, TB_UNSUPPORTED, TB_BUDGET, TB_NOMEM; after one only begin or fini.
 */
#ifndef TO_ORDER_GENERATION_BUILDER_H
#define TO_ORDER_GENERATION_BUILDER_H

#include "online/event/tables.h"
#include "wire/split.h"

struct to_builder {
  struct tb_mem *mem;
  uint64_t generation_bytes_max; /* 0: no limit */
  bool bytes_stay;               /* what is fed needs no copy */
  bool ended;                    /* no more bytes will come */
  bool any_generation;
  bool
      headless; /* the fault stands before the end of the header: Go's reader says no Sync before it */
  unsigned version; /* 0: no header yet */
  tb_rc late_rc;    /* a fault after this generation, reported when that has been taken */
  struct tb_diag late_diag;
  struct tw_split split;

  /* Before 1.26: the batch that began the next generation. */
  bool spilled;
  struct tw_batch spill;
  uint64_t spill_offset;
  unsigned char *spill_bytes; /* its copy, if it does not stay */
};

void to__builder_init(struct to_builder *builder, struct tb_mem *mem, bool bytes_stay,
                      uint64_t generation_bytes_max);
void to__builder_fini(struct to_builder *builder);
/* The next file of the same stream, from its header on. */
void to__builder_begin(struct to_builder *builder);

/* All three: TB_OK: more bytes are wanted. TB_AGAIN: gen is complete; go on with to__builder_next(). TB_END: the
 * trace is over, what follows is not looked at. feed() stops behind the batch with which `enough` bytes or more are
 * taken. */
TB_MUST tb_rc to__builder_feed(struct to_builder *builder, struct to_generation *gen,
                               struct tb_diag *diag, const void *bytes, size_t n, size_t enough,
                               size_t *out_used);
/* No more bytes will come. */
TB_MUST tb_rc to__builder_finish(struct to_builder *builder, struct to_generation *gen,
                                 struct tb_diag *diag);
/* After TB_AGAIN: begins another generation, gen, with what the one before has left over. */
TB_MUST tb_rc to__builder_next(struct to_builder *builder, struct to_generation *gen,
                               struct tb_diag *diag);

#endif
