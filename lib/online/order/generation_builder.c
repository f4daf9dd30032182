/* SPDX-License-Identifier: Apache-2.0 */
#include "online/order/generation_builder.h"

#include <inttypes.h>
#include <string.h>

#include "online/event/assemble.h"

enum { SPILL_BYTES = TW_BATCH_BYTES_MAX + TO_BATCH_SLACK };

/* Arguments shared by the functions of one call. */
struct into {
  struct to_builder *builder;
  struct to_generation *gen;
  struct tb_diag *diag;
};

void to__builder_init(struct to_builder *builder, struct tb_mem *mem, bool bytes_stay,
                      uint64_t generation_bytes_max) {
  *builder = (struct to_builder){ .mem = mem,
                                  .bytes_stay = bytes_stay,
                                  .generation_bytes_max = generation_bytes_max };
  tw_split_init(&builder->split, mem);
}

void to__builder_fini(struct to_builder *builder) {
  if (builder->mem == NULL) return;
  tw_split_fini(&builder->split);
  tb_mem_free(builder->mem, builder->spill_bytes, builder->spill_bytes == NULL ? 0 : SPILL_BYTES);
  *builder = (struct to_builder){ 0 };
}

void to__builder_begin(struct to_builder *builder) {
  builder->ended = builder->spilled = builder->any_generation = builder->headless = false;
  builder->late_rc = TB_OK;
  tw_split_reset(&builder->split);
}

/* Keeps the first fault. */
static tb_rc report(struct tb_diag *diag, const struct tb_diag *fault) {
  if (diag != NULL && diag->rc == TB_OK) *diag = *fault;
  return fault->rc;
}

static tb_rc generation_ready(const struct into *to) {
  TB_TRY(to__complete(to->gen, to->diag));
  to->builder->any_generation = true;
  return TB_AGAIN;
}

/* Returns true if the batch needs no copy: its bytes stay, and TO_BATCH_SLACK bytes after them can be read. */
static bool batch_stays(const struct to_builder *builder, const struct tw_item *item,
                        size_t fed_after) {
  return item->stays && builder->bytes_stay && fed_after >= TO_BATCH_SLACK;
}

static tb_rc add_batch(const struct into *to, const struct tw_batch *batch, uint64_t offset) {
  uint64_t bytes_max = to->builder->generation_bytes_max;

  if (bytes_max != 0 && batch->len > bytes_max - to->gen->bytes) {
    tb_diag_place(to->diag, to->gen->number, TB_NO_THREAD, offset);
    return tb_fail(to->diag, TB_BUDGET, "the generation is larger than %" PRIu64 " bytes",
                   bytes_max);
  }
  return to__add_batch(to->gen, batch, offset, to->diag);
}

/* Adds a batch, copied if its bytes do not outlive the call. */
static tb_rc take_in(const struct into *to, const struct tw_item *item, size_t fed_after) {
  struct tw_batch batch = item->batch;

  if (!batch_stays(to->builder, item, fed_after)) TB_TRY(to__keep_batch(to->gen, &batch));
  return add_batch(to, &batch, item->offset + (item->len - batch.len));
}

static tb_rc refuse(const struct into *to, const struct tw_item *item, const char *reason) {
  tb_diag_place(to->diag, item->batch.gen, item->batch.thread, item->offset);
  return tb_fail(to->diag, TB_BROKEN, "%s", reason);
}

static tb_rc take_batch_126(const struct into *to, const struct tw_item *item, size_t fed_after) {
  struct to_generation *gen = to->gen;

  if (gen->number == 0) gen->number = item->batch.gen;
  if (tw_batch_kind(&item->batch, gen->version) == TW_BATCH_END) return generation_ready(to);
  if (item->batch.gen == 0) return refuse(to, item, "generation number 0");
  if (item->batch.gen != gen->number)
    return refuse(to, item, "a generation has no end, or two are mixed");
  return take_in(to, item, fed_after);
}

static tb_rc spill_batch(const struct into *to, const struct tw_item *item, size_t fed_after) {
  struct to_builder *builder = to->builder;

  builder->spill = item->batch;
  builder->spill_offset = item->offset + (item->len - item->batch.len);
  builder->spilled = true;
  if (batch_stays(builder, item, fed_after)) return generation_ready(to);
  if (builder->spill_bytes == NULL) {
    void *bytes = NULL;
    TB_TRY(tb_mem_resize(builder->mem, &bytes, 0, SPILL_BYTES));
    builder->spill_bytes = bytes;
  }
  if (item->batch.len > 0) memcpy(builder->spill_bytes, item->batch.data, item->batch.len);
  builder->spill.data = builder->spill_bytes;
  return generation_ready(to);
}

static tb_rc take_batch_before_126(const struct into *to, const struct tw_item *item,
                                   size_t fed_after) {
  struct to_generation *gen = to->gen;

  if (item->batch.gen == 0) return refuse(to, item, "generation number 0");
  if (gen->number == 0) gen->number = item->batch.gen;
  if (item->batch.gen == gen->number + 1) return spill_batch(to, item, fed_after);
  if (item->batch.gen != gen->number) return refuse(to, item, "generations come out of order");
  return take_in(to, item, fed_after);
}

/* Handles bytes that cannot be cut into batches. */
static tb_rc take_fault(const struct into *to) {
  struct to_builder *builder = to->builder;
  struct tb_diag fault = builder->split.fault;

  fault.gen = to->gen->number;
  builder->headless = builder->version == 0 || !builder->split.header_done;
  if (!builder->headless && builder->version < 26 && to->gen->number != 0) {
    /* The fault may be in the next generation's first batch only, so this generation is delivered first. */
    builder->late_rc = fault.rc;
    builder->late_diag = fault;
    return generation_ready(to);
  }
  return report(to->diag, &fault);
}

static tb_rc take_header(const struct into *to) {
  struct to_builder *builder = to->builder;
  unsigned version = builder->split.version;

  if (builder->version != 0 && builder->version != version) {
    tb_diag_place(to->diag, TB_NO_GEN, TB_NO_THREAD, 0);
    return tb_fail(to->diag, TB_UNSUPPORTED, "go 1.%u after go 1.%u in one stream", version,
                   builder->version);
  }
  builder->version = to->gen->version = version;
  return TB_OK;
}

static tb_rc take_item(const struct into *to, const struct tw_item *item, size_t fed_after) {
  switch (item->kind) {
  case TW_ITEM_HEADER: return take_header(to);
  case TW_ITEM_RAW: return take_fault(to);
  default: break;
  }
  if (to->builder->version >= 26) return take_batch_126(to, item, fed_after);
  return take_batch_before_126(to, item, fed_after);
}

tb_rc to__builder_feed(struct to_builder *builder, struct to_generation *gen, struct tb_diag *diag,
                       const void *bytes, size_t n, size_t enough, size_t *out_used) {
  const struct into to = { builder, gen, diag };
  const unsigned char *pos = bytes;
  struct tw_item item;
  size_t used;

  *out_used = 0;
  while (*out_used < enough) {
    tb_rc rc = tw_split_feed(&builder->split, pos, n, &used, &item);
    if (rc != TB_OK && rc != TB_AGAIN) return rc;
    pos += used;
    n -= used;
    *out_used += used;
    if (rc == TB_AGAIN) break;
    TB_TRY(take_item(&to, &item, n));
  }
  return TB_OK;
}

/* Called after all bytes, when every complete generation has been taken. */
static tb_rc end_of_bytes(const struct into *to) {
  if (to->builder->version >= 26) {
    if (to->gen->threads.count == 0) return TB_END; /* tables alone do not count */
    tb_diag_place(to->diag, to->gen->number, TB_NO_THREAD, to->builder->split.offset);
    return tb_fail(to->diag, TB_BROKEN, "the generation has no end: the trace is cut off");
  }
  if (to->gen->number != 0 || !to->builder->any_generation) return generation_ready(to);
  return TB_END;
}

tb_rc to__builder_finish(struct to_builder *builder, struct to_generation *gen,
                         struct tb_diag *diag) {
  const struct into to = { builder, gen, diag };
  struct tw_item item;

  if (!builder->ended) {
    builder->ended = true;
    tb_rc rc = tw_split_finish(&builder->split, &item);
    if (builder->version == 0) {
      (void)tb_fail(&builder->split.fault, TB_BROKEN, "not a Go execution trace: it is empty");
      return take_fault(&to);
    }
    /* As in Go's reader, a lone experimental-batch byte counts as the end of the trace. */
    if (rc == TB_OK && !(item.len == 1 && item.bytes[0] == TW_EV_EXPERIMENTAL_BATCH))
      return take_fault(&to);
  }
  return end_of_bytes(&to);
}

tb_rc to__builder_next(struct to_builder *builder, struct to_generation *gen,
                       struct tb_diag *diag) {
  const struct into to = { builder, gen, diag };

  gen->version = builder->version;
  if (builder->late_rc != TB_OK) return report(diag, &builder->late_diag);
  if (builder->spilled) {
    struct tw_batch batch = builder->spill;
    builder->spilled = false;
    gen->number = batch.gen;
    if (batch.data == builder->spill_bytes) TB_TRY(to__keep_batch(gen, &batch));
    TB_TRY(add_batch(&to, &batch, builder->spill_offset));
  }
  return builder->ended ? end_of_bytes(&to) : TB_OK;
}
