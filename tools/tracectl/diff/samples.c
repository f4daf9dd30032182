/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/diff/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "online/spans/stacks/library.h"
#include "tools/tracectl/query/entries.h"
#include "tools/tracectl/term/tracectl.h"

enum { KEY_BYTES = 2 * TW_STRING_BYTES_MAX + 64 /* a reason, a function */ };

static const char *const names[] = {
#define METRIC(id, name, key, about) name,
  TK_DIFF_METRICS(METRIC)
#undef METRIC
};

const char *tk_diff_metric_name(enum tk_diff_metric metric) {
  return names[metric];
}

bool tk_diff_metric_find(const char *name, size_t len, enum tk_diff_metric *out) {
  for (unsigned i = 0; i < TK_DIFF_METRIC_COUNT; i++) {
    if (strlen(names[i]) != len || memcmp(names[i], name, len) != 0) continue;
    *out = (enum tk_diff_metric)i;
    return true;
  }
  return false;
}

/* ---- rows ---- */

static uint64_t hash_of(enum tk_diff_metric metric, const char *key) {
  return tb_hash(TB_HASH_START + metric, key, strlen(key));
}

/* Returns the row's place in by_key, used or free. */
static struct tk_diff_row *look_up(const struct tk_samples *s, enum tk_diff_metric metric,
                                   const char *key, uint64_t *out_hash) {
  for (uint64_t hash = hash_of(metric, key);; hash++) {
    struct tk_diff_row *row = tb_map_at(&s->by_key, hash);
    *out_hash = hash;
    if (row == NULL || (row->metric == metric && strcmp(row->key, key) == 0)) return row;
  }
}

const struct tk_diff_row *tk_samples_find(const struct tk_samples *s, enum tk_diff_metric metric,
                                          const char *key) {
  uint64_t hash;

  return look_up(s, metric, key, &hash);
}

static tb_rc find_row(struct tk_samples *s, enum tk_diff_metric metric, const char *key,
                      struct tk_diff_row **out) {
  uint64_t hash, *place;

  *out = look_up(s, metric, key, &hash);
  if (*out != NULL || (s->rows >= TK_ROWS_MAX && key[0] != 0)) return TB_OK;
  TB_TRY(TB_GROW(s->row, s->room, s->rows));
  struct tk_diff_row *row = calloc(1, sizeof *row);
  if (row == NULL) return TB_NOMEM;
  s->row[s->rows++] = row;
  row->metric = metric;
  row->key = strdup(key);
  if (row->key == NULL) return TB_NOMEM;
  TB_TRY(tb_map_put(&s->by_key, hash, &place, NULL));
  *place = (uintptr_t)row;
  *out = row;
  return TB_OK;
}

static tb_rc count_in(struct tk_samples *s, enum tk_diff_metric metric, const char *key,
                      uint64_t ns) {
  unsigned sample = s->samples - 1;
  struct tk_diff_row *row;

  TB_TRY(find_row(s, metric, key, &row));
  if (row == NULL) return TB_OK;
  if (row->now == NULL) row->now = calloc(TK_DIFF_PLACES, sizeof *row->now);
  if (row->now == NULL) return TB_NOMEM;
  row->now[to_histogram_place(ns) >> (TO_SCALE_MAX - TK_DIFF_SCALE)]++;
  row->count[sample]++;
  row->total_ns[sample] += ns;
  return TB_OK;
}

static tb_rc count(struct tk_samples *s, enum tk_diff_metric metric, const char *key, uint64_t ns) {
  TB_TRY(count_in(s, metric, "", ns));
  return key[0] == 0 ? TB_OK : count_in(s, metric, key, ns);
}

/* ---- generations ---- */

static tb_rc keep_buckets(struct tk_samples *s, struct tk_diff_row *row) {
  for (unsigned i = 0; i < TK_DIFF_PLACES; i++) {
    if (row->now[i] == 0) continue;
    TB_TRY(TB_GROW(row->bucket, row->room, row->buckets));
    row->bucket[row->buckets++] =
        (struct tk_bucket_count){ (uint16_t)(s->samples - 1), (uint16_t)i, row->now[i] };
  }
  free(row->now);
  row->now = NULL;
  return TB_OK;
}

static tb_rc end_generation(struct tk_samples *s) {
  for (size_t i = 0; i < s->rows; i++)
    if (s->row[i]->now != NULL) TB_TRY(keep_buckets(s, s->row[i]));
  return TB_OK;
}

static void join_numbers(uint64_t number[TK_SAMPLES_MAX]) {
  for (unsigned i = 0; i < TK_SAMPLES_MAX / 2; i++) number[i] = number[2 * i] + number[2 * i + 1];
  memset(number + TK_SAMPLES_MAX / 2, 0, TK_SAMPLES_MAX / 2 * sizeof *number);
}

static void join_samples(struct tk_samples *s) {
  for (size_t i = 0; i < s->rows; i++) {
    struct tk_diff_row *row = s->row[i];
    join_numbers(row->count);
    join_numbers(row->total_ns);
    for (size_t k = 0; k < row->buckets; k++) row->bucket[k].sample /= 2;
  }
  join_numbers(s->ns);
  s->samples = TK_SAMPLES_MAX / 2;
  s->shift++;
}

static tb_rc begin_generation(struct tk_samples *s) {
  TB_TRY(end_generation(s));
  if (s->generations++ % (UINT64_C(1) << s->shift) != 0) return TB_OK; /* joins the previous one */
  if (s->samples == TK_SAMPLES_MAX) join_samples(s);
  s->samples++;
  return TB_OK;
}

/* ---- spans ---- */

struct reading {
  struct tk_samples *samples;
  struct tk_pass *pass;
  uint64_t gen;
  to_ns last; /* lengths of samples are counted up to here */
  struct tk_entries entries;
};

static void put_place(const struct tk_pass *pass, uint32_t stack, const char *before,
                      char key[KEY_BYTES]) {
  const struct to_frame *frame = to_callstack_own(tk_pass_stack(pass, stack));

  uint64_t line = frame == NULL ? 0 : to_library_line(frame);

  if (frame == NULL)
    snprintf(key, KEY_BYTES, "%s?", before);
  else
    snprintf(key, KEY_BYTES, line > 0 ? "%s%s:%" PRIu64 : "%s%s", before, frame->function.data,
             line);
}

static tb_rc take_goroutine(struct reading *r, const struct tk_span *at, uint64_t ns) {
  const struct to_span *span = at->span;
  char key[KEY_BYTES], before[KEY_BYTES / 2];
  bool is_idle;

  TB_TRY(tk_entries_look(&r->entries, r->pass, at));
  TB_TRY(tk_pass_is_idle(r->pass, at, &is_idle));
  if (is_idle) return TB_OK;
  const struct to_frame *frame = tk_entries_find(&r->entries, at);
  const char *entry = frame != NULL ? frame->function.data : "?";
  switch (span->state) {
  case TO_GO_RUNNABLE: return count(r->samples, TK_DIFF_SCHED, entry, ns);
  case TO_GO_RUNNING: return count(r->samples, TK_DIFF_RUNNING, entry, ns);
  case TO_GO_SYSCALL:
    put_place(r->pass, at->stack, "", key);
    return count(r->samples, TK_DIFF_SYSCALL, key, ns);
  case TO_GO_WAITING: break;
  default: return TB_OK;
  }
  const char *reason = at->reason->text;
  snprintf(before, sizeof before, "%s at ", reason == NULL ? "" : reason);
  put_place(r->pass, at->stack, before, key);
  return count(r->samples, TK_DIFF_BLOCK, key, ns);
}

static tb_rc take_named(struct reading *r, enum tk_diff_metric metric, struct to_string name,
                        uint64_t ns) {
  char key[KEY_BYTES];

  snprintf(key, sizeof key, "%.*s", (int)name.len, name.len > 0 ? name.data : "");
  return count(r->samples, metric, key, ns);
}

static tb_rc take_span(struct reading *r, const struct tk_span *at) {
  const struct to_span *span = at->span;
  struct to_string name = span->more == NULL ? (struct to_string){ 0 } : span->more->name;
  uint64_t ns = (uint64_t)(span->until - span->from);

  if (span->open || !span->from_known || !span->until_known) return TB_OK;
  switch (span->kind) {
  case TO_SPAN_GOROUTINE: return take_goroutine(r, at, ns);
  case TO_SPAN_TASK: return take_named(r, TK_DIFF_TASK, name, ns);
  case TO_SPAN_REGION: return take_named(r, TK_DIFF_REGION, name, ns);
  case TO_SPAN_RANGE: break;
  default: return TB_OK;
  }
  if (span->state == TO_RANGE_STW) return take_named(r, TK_DIFF_STW, name, ns);
  const char *phase = to_range_info((enum to_range_kind)span->state)->name;
  return count(r->samples, TK_DIFF_GC, phase, ns);
}

static tb_rc look_at(struct reading *r, const struct tk_span *at) {
  struct tk_samples *s = r->samples;

  if (at->gen != 0 && at->gen != r->gen) {
    if (r->gen == 0) r->last = tk_pass_start(r->pass);
    r->gen = at->gen;
    TB_TRY(begin_generation(s));
  }
  if (at->gen == 0) return TB_OK; /* the span has not ended */
  if (at->span->until > r->last) s->ns[s->samples - 1] += (uint64_t)(at->span->until - r->last);
  if (at->span->until > r->last) r->last = at->span->until;
  return take_span(r, at);
}

void tk_samples_init(struct tk_samples *s) {
  *s = (struct tk_samples){ 0 };
  tb_map_init(&s->by_key, &tk_mem, tb_seed());
}

void tk_samples_fini(struct tk_samples *s) {
  for (size_t i = 0; i < s->rows; i++) {
    free(s->row[i]->key);
    free(s->row[i]->bucket);
    free(s->row[i]->now);
    free(s->row[i]);
  }
  free(s->row);
  tb_map_fini(&s->by_key);
}

bool tk_samples_read(struct tk_samples *s, const struct tk_place *place,
                     char error[TK_QUERY_ERROR]) {
  struct reading r = { .samples = s };
  struct tk_span at;
  tb_rc rc = TB_OK;
  int got = 0;

  if (!tk_pass_begin(place, 0, &r.pass, error)) return false;
  while (rc == TB_OK && (got = tk_pass_next(r.pass, &at, error)) == 1) rc = look_at(&r, &at);
  if (rc == TB_OK) rc = end_generation(s);
  if (rc != TB_OK) snprintf(error, TK_QUERY_ERROR, "%s", tb_rc_text(rc));
  tk_entries_fini(&r.entries);
  tk_pass_end(r.pass);
  return rc == TB_OK && got == 0;
}
