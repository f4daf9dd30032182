/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the state of Go's reader: which bytes end a generation, what is delivered before a fault, and
 * where one is overlooked (a table entry cut off at just the end of its batch ends the trace in peace). */
#include "online/reader.h"

#include <inttypes.h>
#include <string.h>

#include "online/assemble.h"
#include "online/order.h"
#include "wire/split.h"

enum phase {
  FEEDING,  /* takes bytes */
  ORDERING, /* a generation is complete */
  DONE,     /* the trace has ended, what follows is not looked at */
  FAILED,
};

struct to_reader {
  struct tb_mem *mem;
  struct tb_diag *diag;
  struct to_limits limits;
  unsigned flags;
  enum phase phase;
  tb_rc failed_rc;
  bool segmented; /* begin() was called: segments end without a last Sync */
  bool ended;     /* finish() was called */
  bool any_generation;
  bool order_begun;
  bool held;     /* ordered to its end, and not let go of yet */
  tb_rc late_rc; /* a fault after this generation, told when it is ordered */
  struct tb_diag late_diag;
  uint64_t generations;
  unsigned version;
  struct tw_split split;
  struct to_generation gen;
  struct to_order *order;

  /* Before 1.26: the batch that began the next generation. */
  bool spilled;
  struct tw_batch spill;
  uint64_t spill_offset;
  unsigned char *spill_bytes; /* its copy, if it does not stay */
};

enum {
  SPILL_BYTES = TW_BATCH_BYTES_MAX + TO_BATCH_SLACK,
  FRAMES_A_RUN = 8192, /* a fifth of a millisecond */
  EVENTS_A_RUN = 4096,
};

tb_rc to_reader_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                    struct to_event_sink sink, struct tb_diag *diag, struct to_reader **out) {
  void *block;

  TB_TRY(tb_mem_take(mem, sizeof(struct to_reader), &block));
  struct to_reader *reader = block;
  reader->mem = mem;
  reader->diag = diag;
  reader->flags = flags;
  if (limits != NULL) reader->limits = *limits;
  tw_split_init(&reader->split, mem);
  to__generation_init(&reader->gen, mem, (uintptr_t)reader);
  tb_rc rc = to__order_new(mem, &reader->limits, sink, diag, &reader->order);
  if (rc != TB_OK) {
    to_reader_free(reader);
    return rc;
  }
  if (flags & TO_READER_PLAIN) to__order_plain(reader->order);
  *out = reader;
  return TB_OK;
}

void to_reader_free(struct to_reader *reader) {
  if (reader == NULL) return;
  to__order_free(reader->order);
  to__generation_fini(&reader->gen);
  tw_split_fini(&reader->split);
  tb_mem_give(reader->mem, reader->spill_bytes, reader->spill_bytes == NULL ? 0 : SPILL_BYTES);
  tb_mem_give(reader->mem, reader, sizeof *reader);
}

unsigned to_reader_version(const struct to_reader *reader) {
  return reader->version;
}
uint64_t to_reader_events(const struct to_reader *reader) {
  return to__order_events(reader->order);
}
uint64_t to_reader_generations(const struct to_reader *reader) {
  return reader->generations;
}

const struct to_generation *to_reader_holds(const struct to_reader *reader) {
  return reader->held ? &reader->gen : NULL;
}

static tb_rc fail(struct to_reader *reader, tb_rc rc) {
  reader->phase = FAILED;
  reader->failed_rc = rc;
  /* Unless the reason is noted already. */
  if (rc == TB_BUDGET)
    (void)tb_fail(reader->diag, rc, "needs more memory than its limit of %zu bytes",
                  reader->mem->bytes_max);
  (void)tb_fail(reader->diag, rc, "%s", tb_rc_text(rc));
  return rc;
}

/* Faults between generations come after a Sync of their own. */
static tb_rc fail_after_sync(struct to_reader *reader, tb_rc rc) {
  if (rc == TB_BROKEN) {
    tb_rc sync_rc = to__order_last_sync(reader->order);
    if (sync_rc != TB_OK) rc = sync_rc;
  }
  return fail(reader, rc);
}

static tb_rc done(struct to_reader *reader) {
  reader->phase = DONE;
  if (reader->segmented) return TB_OK;
  tb_rc rc = to__order_last_sync(reader->order);
  return rc == TB_OK ? TB_OK : fail(reader, rc);
}

static tb_rc generation_ready(struct to_reader *reader) {
  tb_rc rc = to__complete(&reader->gen, reader->diag);

  if (rc != TB_OK) return fail_after_sync(reader, rc);
  reader->any_generation = true;
  reader->phase = ORDERING;
  reader->order_begun = false;
  return TB_AGAIN;
}

/* The batch's own bytes serve if they stay and a little can be read past them. */
static bool batch_stays(const struct to_reader *reader, const struct tw_item *item,
                        size_t fed_after) {
  return item->stays && (reader->flags & TO_READER_BYTES_STAY) && fed_after >= TO_BATCH_SLACK;
}

static tb_rc add_batch(struct to_reader *reader, const struct tw_batch *batch, uint64_t offset) {
  struct to_generation *gen = &reader->gen;
  tb_rc rc;

  if (reader->limits.generation_bytes_max != 0 &&
      batch->len > reader->limits.generation_bytes_max - gen->bytes) {
    tb_diag_place(reader->diag, gen->number, TB_NO_THREAD, offset);
    rc = tb_fail(reader->diag, TB_BUDGET, "the generation is larger than %" PRIu64 " bytes",
                 reader->limits.generation_bytes_max);
  } else {
    rc = to__add_batch(gen, batch, offset, reader->diag);
  }
  if (rc == TB_END) return done(reader);
  return rc == TB_OK ? TB_OK : fail_after_sync(reader, rc);
}

static tb_rc refuse(struct to_reader *reader, const struct tw_item *item, const char *reason) {
  tb_diag_place(reader->diag, item->batch.gen, item->batch.thread, item->offset);
  return fail_after_sync(reader, tb_fail(reader->diag, TB_BROKEN, "%s", reason));
}

/* Batch bytes that outlive the call that brought them. */
static tb_rc keep(struct to_reader *reader, const struct tw_item *item, size_t fed_after,
                  struct tw_batch *batch) {
  if (batch_stays(reader, item, fed_after)) return TB_OK;
  tb_rc rc = to__keep_batch(&reader->gen, batch);
  return rc == TB_OK ? TB_OK : fail(reader, rc);
}

static tb_rc take_batch_126(struct to_reader *reader, const struct tw_item *item,
                            size_t fed_after) {
  struct tw_batch batch = item->batch;
  struct to_generation *gen = &reader->gen;

  if (gen->number == 0) gen->number = batch.gen;
  if (tw_batch_kind(&batch, reader->version) == TW_BATCH_END) return generation_ready(reader);
  if (batch.gen == 0) return refuse(reader, item, "generation number 0");
  if (batch.gen != gen->number)
    return refuse(reader, item, "a generation has no end, or two are mixed");
  TB_TRY(keep(reader, item, fed_after, &batch));
  return add_batch(reader, &batch, item->offset + (item->len - batch.len));
}

static tb_rc spill_batch(struct to_reader *reader, const struct tw_item *item, size_t fed_after) {
  reader->spill = item->batch;
  reader->spill_offset = item->offset + (item->len - item->batch.len);
  reader->spilled = true;
  if (batch_stays(reader, item, fed_after)) return generation_ready(reader);
  if (reader->spill_bytes == NULL) {
    void *bytes = NULL;
    tb_rc rc = tb_mem_resize(reader->mem, &bytes, 0, SPILL_BYTES);
    if (rc != TB_OK) return fail(reader, rc);
    reader->spill_bytes = bytes;
  }
  if (item->batch.len > 0) memcpy(reader->spill_bytes, item->batch.data, item->batch.len);
  reader->spill.data = reader->spill_bytes;
  return generation_ready(reader);
}

static tb_rc take_batch_before_126(struct to_reader *reader, const struct tw_item *item,
                                   size_t fed_after) {
  struct tw_batch batch = item->batch;
  struct to_generation *gen = &reader->gen;

  if (batch.gen == 0) return refuse(reader, item, "generation number 0");
  if (gen->number == 0) gen->number = batch.gen;
  if (batch.gen == gen->number + 1) return spill_batch(reader, item, fed_after);
  if (batch.gen != gen->number) return refuse(reader, item, "generations come out of order");
  TB_TRY(keep(reader, item, fed_after, &batch));
  return add_batch(reader, &batch, item->offset + (item->len - batch.len));
}

/* The bytes cannot be cut into batches from here on. */
static tb_rc take_fault(struct to_reader *reader) {
  struct tb_diag fault = reader->split.fault;

  fault.gen = reader->gen.number;
  if (reader->version == 0 || reader->split.header_done == false) {
    if (reader->diag != NULL && reader->diag->rc == TB_OK) *reader->diag = fault;
    return fail(reader, fault.rc);
  }
  if (reader->version < 26 && reader->gen.number != 0) {
    /* Perhaps only the next generation's first batch: this one is told whole before. */
    reader->late_rc = fault.rc;
    reader->late_diag = fault;
    return generation_ready(reader);
  }
  if (reader->diag != NULL && reader->diag->rc == TB_OK) *reader->diag = fault;
  return fail_after_sync(reader, fault.rc);
}

static tb_rc take_header(struct to_reader *reader) {
  unsigned version = reader->split.version;

  if (reader->version != 0 && reader->version != version) {
    tb_diag_place(reader->diag, TB_NO_GEN, TB_NO_THREAD, 0);
    return fail(reader, tb_fail(reader->diag, TB_UNSUPPORTED, "go 1.%u after go 1.%u in one stream",
                                version, reader->version));
  }
  reader->version = reader->gen.version = version;
  return TB_OK;
}

static tb_rc take_item(struct to_reader *reader, const struct tw_item *item, size_t fed_after) {
  switch (item->kind) {
  case TW_ITEM_HEADER: return take_header(reader);
  case TW_ITEM_RAW: return take_fault(reader);
  default: break;
  }
  if (reader->version >= 26) return take_batch_126(reader, item, fed_after);
  return take_batch_before_126(reader, item, fed_after);
}

tb_rc to_reader_feed(struct to_reader *reader, const void *bytes, size_t n, size_t *out_used) {
  const unsigned char *pos = bytes;
  struct tw_item item;
  size_t used;

  *out_used = 0;
  while (reader->phase == FEEDING) {
    tb_rc rc = tw_split_feed(&reader->split, pos, n, &used, &item);
    pos += used;
    n -= used;
    *out_used += used;
    if (rc == TB_AGAIN) return TB_OK;
    if (rc != TB_OK) return fail(reader, rc);
    rc = take_item(reader, &item, n);
    if (rc != TB_OK) return rc;
  }
  if (reader->phase == DONE) {
    *out_used += n;
    return TB_OK;
  }
  return reader->phase == FAILED ? reader->failed_rc : TB_AGAIN;
}

/* All bytes are in and every complete generation is ordered. */
static tb_rc end_of_bytes(struct to_reader *reader) {
  struct to_generation *gen = &reader->gen;

  if (reader->version >= 26) {
    if (gen->lanes.count == 0) return done(reader); /* tables alone do not count */
    tb_diag_place(reader->diag, gen->number, TB_NO_THREAD, reader->split.offset);
    return fail_after_sync(reader, tb_fail(reader->diag, TB_BROKEN,
                                           "the generation has no end: the trace is cut off"));
  }
  if (gen->number != 0 || !reader->any_generation) return generation_ready(reader);
  return done(reader);
}

tb_rc to_reader_finish(struct to_reader *reader) {
  struct tw_item item;

  if (reader->phase == FAILED) return reader->failed_rc;
  if (reader->phase == ORDERING) return TB_AGAIN;
  if (reader->phase == DONE) return TB_OK;
  if (!reader->ended) {
    reader->ended = true;
    tb_rc rc = tw_split_finish(&reader->split, &item);
    if (reader->version == 0) {
      (void)tb_fail(&reader->split.fault, TB_BROKEN, "not a Go execution trace: it is empty");
      return take_fault(reader);
    }
    /* A lone experimental-batch byte at the end passes as the end. */
    if (rc == TB_OK && !(item.len == 1 && item.bytes[0] == TW_EV_EXPERIMENTAL_BATCH))
      return take_fault(reader);
  }
  return end_of_bytes(reader);
}

static tb_rc next_generation(struct to_reader *reader) {
  reader->generations++;
  reader->phase = FEEDING;
  reader->held = false;
  to__generation_clear(&reader->gen);
  if (reader->late_rc != TB_OK) {
    if (reader->diag != NULL && reader->diag->rc == TB_OK) *reader->diag = reader->late_diag;
    return fail_after_sync(reader, reader->late_rc);
  }
  if (reader->spilled) {
    struct tw_batch batch = reader->spill;
    reader->spilled = false;
    reader->gen.number = batch.gen;
    if (batch.data == reader->spill_bytes) {
      tb_rc rc = to__keep_batch(&reader->gen, &batch);
      if (rc != TB_OK) return fail(reader, rc);
    }
    TB_TRY(add_batch(reader, &batch, reader->spill_offset));
  }
  if (!reader->ended || reader->phase != FEEDING) return TB_OK;
  return end_of_bytes(reader);
}

tb_rc to_reader_run(struct to_reader *reader, unsigned events_max) {
  if (reader->phase == FAILED) return reader->failed_rc;
  if (reader->phase != ORDERING) return TB_OK;
  if (reader->held) return next_generation(reader);
  if (!reader->order_begun) {
    /* Why it fails is told when a stack is asked for, if one is. */
    if ((reader->flags & TO_READER_FRAMES) &&
        to__frames_make_some(&reader->gen, FRAMES_A_RUN) == TB_AGAIN)
      return TB_AGAIN;
    tb_rc rc = to__order_begin(reader->order, &reader->gen);
    if (rc != TB_OK) return fail(reader, rc);
    reader->order_begun = true;
  }
  tb_rc rc = to__order_run(reader->order, events_max);
  if (rc == TB_AGAIN) return TB_AGAIN;
  if (rc != TB_OK) return fail(reader, rc);
  reader->held = (reader->flags & TO_READER_HOLD) != 0;
  return reader->held ? TB_AGAIN : next_generation(reader);
}

static tb_rc run_all(struct to_reader *reader, tb_rc rc) {
  while (rc == TB_AGAIN) rc = to_reader_run(reader, EVENTS_A_RUN);
  return rc;
}

tb_rc to_reader_push(struct to_reader *reader, const void *bytes, size_t n) {
  const unsigned char *pos = bytes;
  tb_rc rc = TB_OK;

  for (size_t used; n > 0 && rc == TB_OK; pos += used, n -= used)
    rc = run_all(reader, to_reader_feed(reader, pos, n, &used));
  return rc;
}

tb_rc to_reader_end(struct to_reader *reader) {
  return run_all(reader, to_reader_finish(reader));
}

tb_rc to_reader_read(struct to_reader *reader, const void *bytes, size_t n) {
  TB_TRY(to_reader_push(reader, bytes, n));
  return to_reader_end(reader);
}

void to_reader_epoch(struct to_reader *reader) {
  to__order_clear(reader->order);
}

tb_rc to_reader_begin(struct to_reader *reader) {
  if (reader->phase == FAILED) {
    to_reader_epoch(reader);
    if (reader->diag != NULL) tb_diag_clear(reader->diag);
  }
  reader->segmented = true;
  reader->phase = FEEDING;
  reader->ended = reader->spilled = reader->any_generation = reader->held = false;
  reader->late_rc = TB_OK;
  tw_split_reset(&reader->split);
  to__generation_clear(&reader->gen);
  return TB_OK;
}
