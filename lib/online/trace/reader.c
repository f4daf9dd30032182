/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a generation, or adopts one that was read elsewhere, and orders its events. Before a fault the same events
 * are delivered as by Go's reader, Syncs included. */
#include "online/trace/reader.h"

#include "online/order/generation_builder.h"
#include "online/order/order.h"
#include "online/trace/prepared.h"

enum phase {
  FEEDING,  /* takes bytes, or adopts */
  ORDERING, /* a generation is complete */
  DONE,     /* the trace has ended; further bytes are ignored */
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
  bool order_begun;
  bool held; /* the generation is ordered, but not released yet */
  uint64_t generations;
  struct to_builder builder;
  struct to_generation own;
  struct to_generation_pool *pool; /* has own's memory while the reader rests; NULL: not shared */
  struct to_generation *gen;       /* own, or an adopted one */
  struct to_order *order;
  tb_rc (*ends)(void *self, const struct to_generation *gen); /* may be NULL */
  void *ends_self;
};

enum {
  FRAMES_A_RUN = 8192, /* a fifth of a millisecond */
  EVENTS_A_RUN = 4096,
};

tb_rc to_reader_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                    struct to_event_sink sink, struct tb_diag *diag, struct to_reader **out) {
  struct to_reader *reader;

  TB_TRY(tb_mem_alloc(mem, sizeof(struct to_reader), &reader));
  reader->mem = mem;
  reader->diag = diag;
  reader->flags = flags;
  if (limits != NULL) reader->limits = *limits;
  to__builder_init(&reader->builder, mem, (flags & TO_READER_BYTES_STAY) != 0,
                   reader->limits.generation_bytes_max);
  to__generation_init(&reader->own, mem);
  reader->gen = &reader->own;
  tb_rc rc = to__order_new(mem, &reader->limits, sink, diag, &reader->order);
  if (rc != TB_OK) {
    to_reader_free(reader);
    return rc;
  }
  if (flags & TO_READER_PLAIN) to__order_plain(reader->order);
  if (flags & TO_READER_PAST_ANNOTATIONS) to__order_past_annotations(reader->order);
  *out = reader;
  return TB_OK;
}

tb_rc to_reader_handle(struct to_reader *reader, const struct to_handler *handler) {
  return to__order_handle(reader->order, handler);
}

void to_reader_free(struct to_reader *reader) {
  if (reader == NULL) return;
  to__order_free(reader->order);
  to__generation_fini(&reader->own);
  to__builder_fini(&reader->builder);
  tb_mem_free(reader->mem, reader, sizeof *reader);
}

void to_reader_share(struct to_reader *reader, struct to_generation_pool *pool) {
  to__generation_fini(&reader->own);
  reader->pool = pool;
}

void to_reader_rest(struct to_reader *reader) {
  if (reader->pool != NULL && reader->own.mem != NULL)
    to__generation_give(&reader->own, reader->pool);
}

void to_reader_on_end(struct to_reader *reader, void *self,
                      tb_rc (*ends)(void *self, const struct to_generation *gen)) {
  reader->ends = ends;
  reader->ends_self = self;
}

unsigned to_reader_version(const struct to_reader *reader) {
  return reader->builder.version;
}
uint64_t to_reader_events(const struct to_reader *reader) {
  return to__order_events(reader->order);
}
uint64_t to_reader_written(const struct to_reader *reader) {
  return to__order_written(reader->order);
}
uint64_t to_reader_lone_region_ends(const struct to_reader *reader) {
  return to__order_lone_region_ends(reader->order);
}
const struct tb_diag *to_reader_misannotated(const struct to_reader *reader) {
  const struct tb_diag *fault = to__order_misannotated(reader->order);

  return fault->rc == TB_OK ? NULL : fault;
}
uint64_t to_reader_generations(const struct to_reader *reader) {
  return reader->generations;
}

/* Describes rc in diag, unless a reason is stored already. */
static void describe_failure(struct tb_diag *diag, tb_rc rc, const struct tb_mem *mem) {
  if (rc == TB_BUDGET)
    (void)tb_fail(diag, rc, "needs more memory than its limit of %zu bytes", mem->bytes_max);
  (void)tb_fail(diag, rc, "%s", tb_rc_text(rc));
}

static tb_rc fail_with(struct to_reader *reader, tb_rc rc) {
  reader->phase = FAILED;
  reader->failed_rc = rc;
  describe_failure(reader->diag, rc, reader->mem);
  return rc;
}

/* Delivers a Sync before a fault between generations, as Go's reader. */
static tb_rc fail_between(struct to_reader *reader, tb_rc rc, bool headless) {
  if (rc == TB_BROKEN && !headless) {
    tb_rc sync_rc = to__order_last_sync(reader->order);
    if (sync_rc != TB_OK) rc = sync_rc;
  }
  return fail_with(reader, rc);
}

static tb_rc end_trace(struct to_reader *reader) {
  reader->phase = DONE;
  if (reader->segmented) return TB_OK;
  tb_rc rc = to__order_last_sync(reader->order);
  return rc == TB_OK ? TB_OK : fail_with(reader, rc);
}

/* Changes the phase by the result of reading. */
static tb_rc set_phase(struct to_reader *reader, tb_rc rc, bool headless) {
  switch (rc) {
  case TB_OK: return TB_OK;
  case TB_END: return end_trace(reader);
  case TB_AGAIN:
    reader->phase = ORDERING;
    reader->order_begun = false;
    return TB_AGAIN;
  default: return fail_between(reader, rc, headless);
  }
}

tb_rc to_reader_feed_some(struct to_reader *reader, const void *bytes, size_t n, size_t enough,
                          size_t *out_used) {
  *out_used = 0;
  if (reader->phase == FEEDING) {
    tb_rc rc =
        to__builder_feed(&reader->builder, reader->gen, reader->diag, bytes, n, enough, out_used);
    rc = set_phase(reader, rc, reader->builder.headless);
    if (rc != TB_OK) return rc;
  }
  if (reader->phase == DONE) *out_used = n;
  if (reader->phase == ORDERING) return TB_AGAIN;
  return reader->phase == FAILED ? reader->failed_rc : TB_OK;
}

tb_rc to_reader_feed(struct to_reader *reader, const void *bytes, size_t n, size_t *out_used) {
  return to_reader_feed_some(reader, bytes, n, n, out_used);
}

tb_rc to_reader_finish(struct to_reader *reader) {
  if (reader->phase == FAILED) return reader->failed_rc;
  if (reader->phase == ORDERING) return TB_AGAIN;
  if (reader->phase == DONE) return TB_OK;
  tb_rc rc = to__builder_finish(&reader->builder, reader->gen, reader->diag);
  return set_phase(reader, rc, reader->builder.headless);
}

tb_rc to_reader_adopt(struct to_reader *reader, struct to_prepared *prepared) {
  if (reader->phase == FAILED) return reader->failed_rc;
  if (reader->phase == ORDERING) return TB_AGAIN;
  if (reader->phase == DONE) return TB_OK;
  reader->builder.version = prepared->version;
  if (reader->diag != NULL && reader->diag->rc == TB_OK) *reader->diag = prepared->diag;
  if (prepared->rc == TB_AGAIN)
    reader->gen = &prepared->gen;
  else if (prepared->rc != TB_END)
    describe_failure(reader->diag, prepared->rc, prepared->mem);
  return set_phase(reader, prepared->rc, prepared->headless);
}

static tb_rc next_generation(struct to_reader *reader) {
  reader->generations++;
  reader->phase = FEEDING;
  reader->held = false;
  if (reader->gen != &reader->own) { /* the next one is adopted, too */
    reader->gen = &reader->own;
    return TB_OK;
  }
  to__generation_clear(reader->gen);
  tb_rc rc = to__builder_next(&reader->builder, reader->gen, reader->diag);
  return set_phase(reader, rc, reader->builder.headless);
}

tb_rc to_reader_run(struct to_reader *reader, unsigned events_max) {
  if (reader->phase == FAILED) return reader->failed_rc;
  if (reader->phase != ORDERING) return TB_OK;
  if (reader->held) return next_generation(reader);
  if (!reader->order_begun) {
    /* A failure is reported when a stack is read. */
    if ((reader->flags & TO_READER_FRAMES) &&
        to__frames_make_some(reader->gen, FRAMES_A_RUN) == TB_AGAIN)
      return TB_AGAIN;
    tb_rc rc = to__order_begin(reader->order, reader->gen);
    if (rc != TB_OK) return fail_with(reader, rc);
    reader->order_begun = true;
  }
  tb_rc rc = to__order_run(reader->order, events_max);
  if (rc == TB_AGAIN) return TB_AGAIN;
  if (rc != TB_OK) return fail_with(reader, rc);
  if (reader->ends != NULL) rc = reader->ends(reader->ends_self, reader->gen);
  if (rc != TB_OK) return fail_with(reader, rc);
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
  bool unfinished = reader->phase == ORDERING && !reader->held;

  if (reader->phase == FAILED || unfinished) to_reader_epoch(reader);
  if (reader->phase == FAILED && reader->diag != NULL) tb_diag_clear(reader->diag);
  tb_diag_clear(to__order_misannotated(reader->order));
  reader->segmented = true;
  reader->phase = FEEDING;
  reader->held = false;
  reader->gen = &reader->own;
  to__builder_begin(&reader->builder);
  if (reader->own.mem == NULL) to__generation_take(&reader->own, reader->pool, reader->mem);
  to__generation_clear(reader->gen);
  return TB_OK;
}
