/* SPDX-License-Identifier: Apache-2.0 */
/* Walks from batch to batch by their lengths, and reads only those with events. */
#include "online/trace/survey.h"

#include "online/event/tables.h"
#include "wire/raw.h"
#include "wire/sections.h"
#include "wire/split.h"

struct look {
  struct to_survey *out;
  uint64_t gen; /* current generation; 0: none */
  bool ended;   /* an end mark was read: the next batch begins another generation */
  uint64_t looked_bytes;
  /* fields of the first generation */
  bool any;
  uint64_t ticks_min, frequency, clock_ticks, clock_s, clock_ns;
  struct tw_experiments *experiments; /* of the current generation */
};

static void count_events(struct look *look, const struct tw_batch *batch) {
  struct tb_diag diag;
  struct tw_raw ev;
  size_t used;

  tb_diag_clear(&diag);
  for (size_t at = 0; at < batch->len; at += used) {
    if (tw_raw_read_own(batch->data + at, batch->len - at, look->experiments, &diag, &ev, &used) !=
        TB_OK)
      return;
    if (ev.spec->kind == TW_KIND_EXPERIMENT) look->out->has |= TO_HAS_EXPERIMENTS;
    look->out->events += ev.type != TW_EV_CPU_SAMPLES;
  }
}

/* If the text cannot be read, the experiment's events cannot be read either. */
static void take_experiment(struct look *look, const struct tw_batch *batch) {
  struct tb_diag diag;
  const char *text;
  size_t len;

  tb_diag_clear(&diag);
  look->out->has |= TO_HAS_EXPERIMENTS;
  if (tw_experiments_text(batch->experiment, batch->data, batch->len, &text, &len) &&
      tw_experiments_read(look->experiments, text, len, true, &diag) != TB_OK)
    tw_experiments_init(look->experiments);
}

static void take_clocks(struct look *look, const struct tw_batch *batch) {
  struct tw_section section;
  struct tw_sync sync;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tw_section_open(&section, batch, look->out->version, &diag);
  while (tw_sync_next(&section, look->out->version, &sync) == TB_OK) {
    if (sync.type == TW_EV_CLOCK_SNAPSHOT) look->out->has |= TO_HAS_CLOCK;
    if (look->out->generations > 1) continue;
    if (sync.type == TW_EV_FREQUENCY) {
      look->frequency = sync.args[0];
    } else {
      look->clock_ticks = batch->time + sync.args[0];
      look->clock_s = sync.args[2];
      look->clock_ns = sync.args[3];
    }
  }
}

static void take_batch(struct look *look, const struct tw_batch *batch) {
  struct to_survey *out = look->out;

  if (look->gen != batch->gen || look->ended) {
    out->generations++;
    tw_experiments_init(look->experiments);
  }
  look->gen = batch->gen;
  look->ended = false;
  if (out->generations == 1 && (!look->any || batch->time < look->ticks_min))
    look->ticks_min = batch->time;
  look->any = true;
  switch (tw_batch_kind(batch, out->version)) {
  case TW_BATCH_CPU_SAMPLES: out->has |= TO_HAS_SAMPLES; break;
  case TW_BATCH_EXPERIMENTAL: take_experiment(look, batch); return;
  case TW_BATCH_SYNC: take_clocks(look, batch); return;
  case TW_BATCH_EVENTS:
    if (batch->thread != TO_NONE) out->has |= TO_HAS_THREADS;
    break;
  default: return;
  }
  count_events(look, batch);
}

static void take_item(struct look *look, const struct tw_item *item) {
  if (item->kind == TW_ITEM_RAW) return;
  look->looked_bytes = item->offset + item->len;
  if (item->kind == TW_ITEM_BATCH) take_batch(look, &item->batch);
  if (item->kind == TW_ITEM_END_MARK) {
    look->out->has |= TO_HAS_END_MARKS;
    look->ended = true;
  }
}

/* A peer may send any numbers; a wall time that no clock can show is left out. */
static void reckon_start(const struct look *look) {
  struct to_survey *out = look->out;

  out->starts = look->any && look->frequency > 0;
  if (!out->starts) return;
  double ns_per_tick = 1.0 / ((double)look->frequency / 1e9);
  out->start_ns = to__ticks_ns(ns_per_tick, look->ticks_min);
  if (!(out->has & TO_HAS_CLOCK) || look->clock_s > INT64_MAX / 1000000000) return;
  uint64_t since_start =
      (uint64_t)to__ticks_ns(ns_per_tick, look->clock_ticks) - (uint64_t)out->start_ns;
  out->start_wall_ns = look->clock_s * UINT64_C(1000000000) + look->clock_ns - since_start;
}

static void reckon_events(const struct look *look, uint64_t trace_bytes) {
  struct to_survey *out = look->out;

  out->exact = look->looked_bytes == trace_bytes;
  if (out->exact || look->looked_bytes == 0) return;
  double all = (double)out->events * ((double)trace_bytes / (double)look->looked_bytes);
  out->events = all < 1e18 ? (uint64_t)all : UINT64_C(1000000000000000000);
}

tb_rc to_survey(const void *bytes, size_t n, uint64_t trace_bytes, struct tb_mem *mem,
                struct tb_diag *diag, struct to_survey *out) {
  const unsigned char *pos = bytes;
  struct look look = { .out = out };
  struct tw_split split;
  struct tw_item item;
  size_t used;
  tb_rc rc;

  *out = (struct to_survey){ 0 };
  TB_TRY(tb_mem_alloc(mem, sizeof *look.experiments, &look.experiments));
  tw_split_init(&split, mem);
  while ((rc = tw_split_feed(&split, pos, n, &used, &item)) == TB_OK) {
    pos += used;
    n -= used;
    if (item.kind == TW_ITEM_RAW) break;
    out->version = split.version;
    take_item(&look, &item);
  }
  if (rc == TB_AGAIN) rc = TB_OK;
  if (rc == TB_OK && !split.header_done) {
    if (tw_split_finish(&split, &item) == TB_END && split.fault.rc == TB_OK)
      (void)tb_fail(&split.fault, TB_BROKEN, "not a Go execution trace: it is empty");
    if (diag != NULL) *diag = split.fault;
    rc = split.fault.rc;
  }
  tw_split_fini(&split);
  tb_mem_free(mem, look.experiments, sizeof *look.experiments);
  if (rc != TB_OK) return rc;
  reckon_start(&look);
  reckon_events(&look, trace_bytes);
  return TB_OK;
}
