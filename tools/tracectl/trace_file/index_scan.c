/* SPDX-License-Identifier: Apache-2.0 */
/* A batch header has generation and length, so a gigabyte needs some twenty thousand headers; the pages
 * between them are not touched. A generation's clock is in its single sync batch. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "online/trace/active.h"
#include "tools/tracectl/term/progress.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/index.h"
#include "tools/tracectl/trace_file/input.h"
#include "wire/raw.h"
#include "wire/sections.h"
#include "wire/split.h"

enum { NS = 1000000000, RELEASE_BYTES = 8 << 20 };

struct scan {
  struct tk_index *index;
  struct tw_split split;
  bool count, ended;    /* ended by an end mark: the next batch begins a row */
  uint64_t first_ticks; /* of the trace */
  uint64_t released;    /* a mapping's pages before it are released */
  bool any;
  /* fields of the current generation */
  uint64_t begin_ticks;
  uint64_t frequency;
  bool has_clock;
  uint64_t clock_ticks, clock_wall_ns;
  struct tw_experiments experiments;
  struct to_active active;
};

static double ns_per_tick(const struct scan *s) {
  return s->frequency > 0 ? (double)NS / (double)s->frequency : 0;
}

static struct tk_index_row *last_row(struct scan *s) {
  return &s->index->row[s->index->n - 1];
}

/* Forged ticks may have any value; out of range they become 0. */
static int64_t to_ns(const struct scan *s, uint64_t from_ticks, uint64_t until_ticks) {
  double ns = ((double)until_ticks - (double)from_ticks) * ns_per_tick(s);

  return ns > -9e18 && ns < 9e18 ? (int64_t)ns : 0;
}

static tb_rc keep_active(struct scan *s) {
  struct tk_index_row *row = last_row(s);
  struct tb_buf packed;

  tb_buf_init(&packed, &tk_mem);
  tb_rc rc = to_active_pack(&s->active, &packed);
  if (rc == TB_OK && (row->active = malloc(packed.len)) == NULL) rc = TB_NOMEM;
  if (rc == TB_OK) {
    memcpy(row->active, packed.data, packed.len);
    row->active_len = packed.len;
  }
  tb_buf_fini(&packed);
  to_active_clear(&s->active);
  return rc;
}

/* At the end of a generation: converts ticks to times. */
static void end_times(struct scan *s) {
  if (s->begin_ticks == UINT64_MAX) return;
  struct tk_index_row *row = last_row(s);

  if (s->begin_ticks > s->first_ticks)
    row->since_ns = (uint64_t)to_ns(s, s->first_ticks, s->begin_ticks);
  if (!s->has_clock) return;
  row->begin_wall_ns = s->clock_wall_ns - (uint64_t)to_ns(s, s->begin_ticks, s->clock_ticks);
  if (s->index->n > 1) row[-1].end_wall_ns = row->begin_wall_ns;
}

static bool end_row(struct scan *s) {
  if (s->index->n == 0) return true;
  end_times(s);
  return !s->count || keep_active(s) == TB_OK;
}

static bool begin_row(struct scan *s, uint64_t gen, uint64_t offset) {
  struct tk_index *index = s->index;

  if (!end_row(s)) return false;
  if (TB_GROW(index->row, index->room, index->n) != TB_OK) return false;
  index->row[index->n++] = (struct tk_index_row){ .gen = gen, .offset = offset };
  s->begin_ticks = UINT64_MAX;
  s->has_clock = s->ended = false;
  tw_experiments_init(&s->experiments);
  return true;
}

static void take_sync(struct scan *s, const struct tw_batch *batch) {
  struct tw_section section;
  struct tw_sync sync;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tw_section_open(&section, batch, s->split.version, &diag);
  while (tw_sync_next(&section, s->split.version, &sync) == TB_OK) {
    if (sync.type == TW_EV_FREQUENCY) {
      s->frequency = sync.args[0];
    } else if (sync.type == TW_EV_CLOCK_SNAPSHOT) {
      s->has_clock = true;
      s->clock_ticks = batch->time + sync.args[0];
      s->clock_wall_ns = sync.args[2] * NS + sync.args[3];
    }
  }
}

/* Counts a batch up to its first unreadable event; ordering reports the reason. */
static bool count_events(struct scan *s, const struct tw_batch *batch, enum tw_batch_kind kind) {
  const unsigned char *pos = batch->data, *end = pos + batch->len;
  struct tb_diag diag;
  struct tw_raw ev;
  const char *text;
  size_t used;

  tb_diag_clear(&diag);
  if (tw_experiments_text(batch->experiment, pos, batch->len, &text, &used) &&
      tw_experiments_read(&s->experiments, text, used, true, &diag) != TB_OK)
    tw_experiments_init(&s->experiments);
  if (kind != TW_BATCH_EVENTS && kind != TW_BATCH_CPU_SAMPLES) return true;
  while (pos < end &&
         tw_raw_read_own(pos, (size_t)(end - pos), &s->experiments, &diag, &ev, &used) == TB_OK) {
    if (to_active_event(&s->active, &ev) != TB_OK) return false;
    last_row(s)->events += ev.type != TW_EV_CPU_SAMPLES;
    pos += used;
  }
  return true;
}

static bool take_batch(struct scan *s, const struct tw_item *item) {
  enum tw_batch_kind kind = tw_batch_kind(&item->batch, s->split.version);
  struct tk_index *index = s->index;

  if (index->n == 0 || s->ended || last_row(s)->gen != item->batch.gen)
    if (!begin_row(s, item->batch.gen, item->offset)) return false;
  if (!s->any) s->first_ticks = item->batch.time;
  s->any = true;
  if (kind == TW_BATCH_EVENTS && item->batch.time < s->begin_ticks)
    s->begin_ticks = item->batch.time;
  if (kind == TW_BATCH_SYNC) {
    take_sync(s, &item->batch);
    if (s->begin_ticks == UINT64_MAX) s->begin_ticks = item->batch.time;
  }
  struct tk_index_row *row = last_row(s);
  row->batches++;
  row->bytes = item->offset + item->len - row->offset;
  return !s->count || count_events(s, &item->batch, kind);
}

static bool take_item(struct scan *s, const struct tw_item *item) {
  s->index->bytes = item->offset + item->len;
  switch (item->kind) {
  case TW_ITEM_HEADER: s->index->header_bytes = item->len; return true;
  case TW_ITEM_BATCH: return take_batch(s, item);
  case TW_ITEM_END_MARK:
    if (s->index->n > 0) {
      last_row(s)->bytes = item->offset + item->len - last_row(s)->offset;
      s->ended = true;
    }
    return true;
  default: return true; /* raw: the reason is in split.fault */
  }
}

static tb_rc feed(struct scan *s, struct tk_input *in, struct tk_progress *bar,
                  const unsigned char *bytes, size_t n) {
  uint64_t *released = &s->released;
  struct tw_item item;
  tb_rc rc;

  do {
    size_t used;
    rc = tw_split_feed(&s->split, bytes, n, &used, &item);
    bytes += used;
    n -= used;
    if (rc != TB_OK) break;
    if (!take_item(s, &item)) return TB_NOMEM;
    if (!tk_input_stays(in)) continue;
    tk_progress_at(bar, item.offset);
    if (item.offset > *released + RELEASE_BYTES) tk_input_release(in, *released = item.offset);
  } while (rc == TB_OK);
  return rc == TB_AGAIN ? TB_OK : rc;
}

static tb_rc scan_all(struct scan *s, struct tk_input *in, struct tk_progress *bar,
                      bool *out_read) {
  const unsigned char *bytes;
  struct tw_item item;
  size_t n;
  int got;
  tb_rc rc;

  while ((got = tk_input_next(in, &bytes, &n)) == 1) {
    TB_TRY(feed(s, in, bar, bytes, n));
    if (!tk_input_stays(in)) tk_progress_at(bar, tk_input_position(in));
  }
  *out_read = got == 0;
  while ((rc = tw_split_finish(&s->split, &item)) == TB_OK)
    if (!take_item(s, &item)) return TB_NOMEM;
  if (!end_row(s)) return TB_NOMEM;
  s->index->version = s->split.version;
  s->index->fault = s->split.fault;
  return rc == TB_END ? TB_OK : rc;
}

bool tk_index_scan(const char *verb, const char *path, bool count, bool progress,
                   struct tk_index *out) {
  struct scan s = { .index = out, .count = count };
  struct tk_progress bar;
  struct tk_input *in;
  bool read = true;

  memset(out, 0, sizeof *out);
  if (!tk_input_open(verb, path, &in)) return false;
  tk_progress_begin(&bar, path, tk_input_size(in), progress);
  tw_split_init(&s.split, &tk_mem);
  to_active_init(&s.active, &tk_mem);
  tb_rc rc = scan_all(&s, in, &bar, &read);
  tw_split_fini(&s.split);
  to_active_fini(&s.active);
  tk_progress_end(&bar);
  tk_input_close(in);
  if (rc != TB_OK) tk_fail(verb, "%s: %s", path, tb_rc_text(rc));
  if (rc == TB_OK && read) return true;
  tk_index_fini(out);
  return false;
}

bool tk_index_find(const char *verb, const char *path, bool goroutines, struct tk_index *out) {
  if (tk_index_load(path, out)) {
    if (!goroutines || tk_index_knows_goroutines(out)) return true;
    tk_index_fini(out);
  }
  return tk_index_scan(verb, path, goroutines, false, out);
}
