/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/kinds/user_types.h"

#include <string.h>

#include "base/grow.h"
#include "base/hash.h"

enum { TEXT_CHUNK_BYTES = 2 << 10 };

static uint64_t hash_of(const struct to_user_types *t, struct to_string text) {
  return tb_hash(t->secret, text.data, text.len);
}

static tb_rc add_site(struct to_user_types *t, uint32_t type, uint32_t stack, uint32_t *out) {
  struct to_user_site site = { .type = type, .stack = stack };

  TB_TRY(TB_MEM_GROW(t->windows->mem, t->site, t->sites_room, t->sites));
  TB_TRY(to_windows_series(t->windows, t->type[type].all, &site.series));
  *out = (uint32_t)t->sites;
  t->site[t->sites++] = site;
  return TB_OK;
}

/* A failure leaves no type behind, only a site: types++ is last. */
static tb_rc add_type(struct to_user_types *t, struct to_string text, uint64_t hash) {
  uint32_t number = (uint32_t)t->types;
  struct to_user_type type = { .hash = hash };
  char *copy;

  TB_TRY(TB_MEM_GROW(t->windows->mem, t->type, t->types_room, t->types));
  TB_TRY(tb_arena_alloc(&t->text, text.len + 1, &copy));
  if (text.len > 0) memcpy(copy, text.data, text.len);
  copy[text.len] = '\0';
  type.text = (struct to_string){ copy, text.len };
  TB_TRY(to_windows_series(t->windows, t->latency, &type.all));
  for (unsigned i = 0; i < TO_USER_TIMES; i++)
    TB_TRY(to_windows_series(t->windows, t->times, &type.time[i]));
  t->type[number] = type;
  TB_TRY(add_site(t, number, TO_STACK_OTHER, &t->type[number].rest));
  t->types++;
  return TB_OK;
}

tb_rc to_user_types_init(struct to_user_types *t, struct to_windows *windows, size_t sites_max) {
  *t = (struct to_user_types){ .windows = windows, .sites_max = sites_max, .secret = tb_seed() };
  tb_arena_init(&t->text, windows->mem, TEXT_CHUNK_BYTES);
  tb_map_init(&t->by_hash, windows->mem, tb_seed());
  tb_map_init(&t->by_site, windows->mem, tb_seed());
  TB_TRY(to_windows_series(windows, TO_NO_SERIES, &t->latency));
  TB_TRY(to_windows_series(windows, TO_NO_SERIES, &t->times));
  TB_TRY(to_windows_series(windows, TO_NO_SERIES, &t->begin_unknown));
  TB_TRY(to_windows_series(windows, TO_NO_SERIES, &t->cut));
  return add_type(t, (struct to_string){ "", 0 }, 0);
}

void to_user_types_fini(struct to_user_types *t) {
  if (t->windows == NULL) return;
  tb_arena_fini(&t->text);
  tb_map_fini(&t->by_hash);
  tb_map_fini(&t->by_site);
  tb_mem_free(t->windows->mem, t->type, t->types_room * sizeof(*t->type));
  tb_mem_free(t->windows->mem, t->site, t->sites_room * sizeof(*t->site));
}

bool to_user_types_pass_over(struct to_user_types *t, const struct to_span *span) {
  t->seen = true;
  if (span->until_known && span->from_known) return false;
  to_windows_sum(t->windows, span->until_known ? t->begin_unknown : t->cut, span->from, span->until,
                 0, false);
  return true;
}

static bool is_text(struct to_string a, struct to_string b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

tb_rc to_user_types_find(struct to_user_types *t, struct to_string text, uint32_t *out) {
  bool fresh;
  uint64_t hash = hash_of(t, text), *place;

  *out = TO_USER_OTHER;
  if (t->types > TO_USER_TYPES_MAX && tb_map_find(&t->by_hash, hash) == NULL) return TB_OK;
  TB_TRY(tb_map_put(&t->by_hash, hash, &place, &fresh));
  if (fresh) {
    tb_rc rc = add_type(t, text, hash);
    if (rc != TB_OK) {
      tb_map_remove(&t->by_hash, hash);
      return rc;
    }
    *place = t->types - 1;
  }
  if (is_text(t->type[*place].text, text)) *out = (uint32_t)*place;
  return TB_OK;
}

static tb_rc find_site(struct to_user_types *t, uint32_t type, uint32_t stack, uint32_t *out) {
  uint64_t key = (uint64_t)type << 32 | stack, *place;
  bool fresh;

  *out = t->type[type].rest;
  if (stack == TO_STACK_OTHER || type == TO_USER_OTHER) return TB_OK;
  if (t->sites >= t->sites_max + t->types && tb_map_find(&t->by_site, key) == NULL) return TB_OK;
  TB_TRY(tb_map_put(&t->by_site, key, &place, &fresh));
  if (fresh) {
    uint32_t site;
    tb_rc rc = add_site(t, type, stack, &site);
    if (rc != TB_OK) {
      tb_map_remove(&t->by_site, key);
      return rc;
    }
    *place = site;
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

tb_rc to_user_types_add(struct to_user_types *t, uint32_t type, uint32_t stack, to_ns from,
                        to_ns until) {
  uint32_t site;

  TB_TRY(find_site(t, type, stack, &site));
  return to_windows_add(t->windows, t->site[site].series, from, until, 0, false);
}

void to_user_types_add_time(struct to_user_types *t, uint32_t type,
                            const struct to_region_time *time, to_ns until) {
  const uint32_t *series = t->type[type].time;

  for (unsigned i = 0; i < TO_REGION_PARTS; i++)
    if (time->ns[i] > 0)
      to_windows_sum(t->windows, series[i], until - (to_ns)time->ns[i], until, 0, false);
  if (time->assist_ns > 0)
    to_windows_sum(t->windows, series[TO_REGION_PARTS], until - (to_ns)time->assist_ns, until, 0,
                   false);
  to_windows_sum(t->windows, series[TO_USER_COUNT], until, until, 0, false);
}

static tb_rc find_row(const struct to_user_types *t, struct to_draft *d, unsigned table,
                      uint32_t number, struct to_draft_value **out) {
  const struct to_user_type *type = &t->type[number];

  if (number == TO_USER_OTHER) return to_draft_other(d, table, out);
  TB_TRY(to_draft_row(d, table, type->hash, out));
  to_draft_text(&(*out)[TO_TYPE], type->text);
  if ((*out)[TO_TYPE_OPEN].value.none) to_draft_number(&(*out)[TO_TYPE_OPEN], 0);
  return TB_OK;
}

static tb_rc report_times(const struct to_user_types *t, struct to_draft *d, unsigned table) {
  struct to_draft_value *row;

  for (uint32_t number = 0; number < t->types; number++) {
    const uint32_t *series = t->type[number].time;
    if (to_view_cell(d->view, series[TO_USER_COUNT]) == NULL) continue;
    TB_TRY(find_row(t, d, table, number, &row));
    for (unsigned i = 0; i < TO_USER_COUNT; i++)
      to_draft_number(&row[TO_TYPE_TIME + i], to_user_ns(to_view_sum(d->view, series[i]).total_ns));
    to_draft_number(&row[TO_TYPE_TIME + TO_USER_COUNT],
                    (int64_t)to_view_sum(d->view, series[TO_USER_COUNT]).count);
  }
  return TB_OK;
}

static void report_passed_over(struct to_draft *d, unsigned figure, uint32_t series) {
  to_draft_number(to_draft_figure(d, figure), (int64_t)to_view_sum(d->view, series).count);
}

tb_rc to_user_types_report(const struct to_user_types *t, struct to_draft *d, unsigned table) {
  struct to_draft_value *row;

  report_passed_over(d, TO_USER_BEGIN_UNKNOWN, t->begin_unknown);
  report_passed_over(d, TO_USER_CUT, t->cut);
  for (const struct to_user_site *site = t->site; site < t->site + t->sites; site++) {
    if (to_view_cell(d->view, site->series) == NULL) continue;
    TB_TRY(to_draft_series(d, to_draft_figure(d, TO_USER_LATENCY), site->series));
    TB_TRY(find_row(t, d, table, site->type, &row));
    TB_TRY(to_draft_series(d, &row[TO_TYPE_LATENCY], site->series));
  }
  return report_times(t, d, table);
}

/* ---- open tasks and regions ---- */

/* The oldest ones, in no particular order. */
struct oldest {
  struct to_span span[TO_USER_OPEN_MAX];
  struct to_span_more more[TO_USER_OPEN_MAX];
  size_t n, youngest;
};
struct open_ones {
  const struct to_user_types *types;
  struct to_draft *draft;
  unsigned table;
  int64_t total;
  struct oldest *oldest;
};

/* Copies a text for the report, with a NUL after it. */
static tb_rc keep_text(struct to_draft *d, struct to_string text, struct to_string *out) {
  char *copy;

  TB_TRY(tb_arena_alloc(d->arena, text.len + 1, &copy));
  if (text.len > 0) memcpy(copy, text.data, text.len);
  copy[text.len] = '\0';
  *out = (struct to_string){ copy, text.len };
  return TB_OK;
}

static tb_rc count_open(const struct open_ones *open, struct to_string text) {
  const struct to_draft_table *rows = &open->draft->table[open->table];
  struct to_draft *d = open->draft;
  struct to_draft_value *row;
  struct to_string copy;
  uint64_t hash = hash_of(open->types, text);

  if (rows->rows > TO_USER_TYPES_MAX && tb_map_find(&rows->by_key, hash) == NULL)
    TB_TRY(to_draft_other(d, open->table, &row));
  else
    TB_TRY(to_draft_row(d, open->table, hash, &row));
  if (row[TO_TYPE].value.none && row != rows->other) {
    TB_TRY(keep_text(d, text, &copy));
    to_draft_text(&row[TO_TYPE], copy);
  }
  int64_t so_far = row[TO_TYPE_OPEN].value.none ? 0 : row[TO_TYPE_OPEN].value.number;
  to_draft_number(&row[TO_TYPE_OPEN], so_far + 1);
  return TB_OK;
}

static void note_oldest(struct oldest *oldest, const struct to_span *span) {
  size_t at = oldest->n;

  if (oldest->n == TO_USER_OPEN_MAX) {
    if (span->from >= oldest->span[oldest->youngest].from) return;
    at = oldest->youngest;
  } else {
    oldest->n++;
  }
  oldest->span[at] = *span;
  oldest->more[at] = *span->more;
  oldest->span[at].more = &oldest->more[at];
  if (oldest->n < TO_USER_OPEN_MAX) return;
  for (size_t i = 0; i < oldest->n; i++)
    if (oldest->span[i].from > oldest->span[oldest->youngest].from) oldest->youngest = i;
}

static tb_rc take_open(void *self, const struct to_span *span) {
  struct open_ones *open = self;

  open->total++;
  note_oldest(open->oldest, span);
  return count_open(open, span->more->name);
}

tb_rc to_user_types_report_open(const struct to_user_types *t, struct to_analyses *a,
                                struct to_draft *d, enum to_span_kind kind, unsigned table,
                                const char *none,
                                tb_rc (*list)(struct to_draft *d,
                                              const struct to_user_open *open)) {
  struct open_ones open = { .types = t, .draft = d, .table = table };
  uint32_t stack;

  TB_TRY(tb_arena_alloc(d->arena, sizeof(*open.oldest), &open.oldest));
  open.oldest->n = open.oldest->youngest = 0;
  TB_TRY(to_spans_open_of(a->spans, kind, take_open, &open));
  to_draft_number(to_draft_figure(d, TO_USER_OPEN), open.total);
  for (size_t i = 0; i < open.oldest->n; i++) {
    const struct to_span *span = &open.oldest->span[i];
    struct to_user_open one = { .span = span, .age_ns = to_user_length(span->from, span->until) };
    TB_TRY(to_spans_stack(a->spans, a->generation, span->stack, &stack));
    one.stack = to_stack_table_stack(a->stacks, stack);
    TB_TRY(keep_text(d, span->more->name, &one.type));
    TB_TRY(list(d, &one));
  }
  return t->seen || open.total > 0 ? TB_OK : to_draft_note(d, none);
}
