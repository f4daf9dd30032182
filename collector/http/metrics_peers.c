/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/metrics_peers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collector/http/metrics_text.h"
#include "proto/report_view.pb-c.h"
#include "proto/unpack.h"

enum { VIEW_MEMORY_MAX = 8 << 20, LABEL_MAX = 64, LINES_WITH_QUANTILES = 5, LINES_WITHOUT = 2 };

static const struct family {
  const char *kind, *name, *text;
} families[] = {
  { "syscall", "trace_blocked_syscall_seconds", "System calls that lost their P, by program." },
  { "stw", "trace_stw_seconds", "Time the world was stopped, by program and reason." },
};

struct series {
  unsigned family;
  size_t order; /* of its stream's first report: later streams take the place of earlier ones */
  unsigned char stream[TC_REPORT_STREAM_BYTES];
  char service[LABEL_MAX + 1], instance[LABEL_MAX + 1], reason[LABEL_MAX + 1];
  uint64_t count, total_ns, p50_ns, p90_ns, p99_ns;
};

struct table {
  struct series *series;
  size_t n, room, streams, left_out;
  struct tb_mem mem;
  struct tb_arena arena;
  unsigned family; /* being read */
};

/* --- labels ------------------------------------------------------------------------------------ */

static void set_label(char out[LABEL_MAX + 1], const char *text) {
  size_t len = text != NULL ? strlen(text) : 0;
  bool fits = len >= 1 && len <= LABEL_MAX;

  for (size_t i = 0; fits && i < len; i++) {
    char c = text[i];
    fits = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
  }
  strcpy(out, "other");
  if (fits) memcpy(out, text, len + 1);
}

/* "/stw/gc/mark-termination" as a label: gc.mark-termination */
static void set_reason(char out[LABEL_MAX + 1], const char *id) {
  char text[2 * LABEL_MAX];
  size_t len = 0;

  if (id != NULL && strncmp(id, "/stw/", 5) == 0) id += 5;
  for (; id != NULL && id[len] != '\0' && len < sizeof text - 1; len++)
    text[len] = id[len] == '/' ? '.' : id[len];
  text[len] = '\0';
  set_label(out, text);
}

/* --- reports to series ------------------------------------------------------------------------- */

static tb_rc add(struct table *t, const struct tc_report *report, const char *reason,
                 const Tracecollect__V1__Distribution *found) {
  TB_TRY(TB_GROW(t->series, t->room, t->n));
  struct series *s = &t->series[t->n++];
  *s = (struct series){ .family = t->family,
                        .order = t->streams,
                        .count = found->count,
                        .total_ns = found->total_ns,
                        .p50_ns = found->p50_ns,
                        .p90_ns = found->p90_ns,
                        .p99_ns = found->p99_ns };
  memcpy(s->stream, report->stream, sizeof s->stream);
  set_label(s->service, report->service);
  set_label(s->instance, report->instance);
  if (reason != NULL) set_reason(s->reason, reason);
  return TB_OK;
}

static tb_rc add_report(void *self, const struct tc_report *report) {
  struct table *t = self;
  ProtobufCAllocator allocator = tp_arena_allocator(&t->arena);
  const Tracecollect__V1__ReportView *r =
      tracecollect__v1__report_view__unpack(&allocator, report->len, report->bytes);
  tb_rc rc = TB_OK;

  t->streams++;
  if (r == NULL)
    t->left_out++;
  else if (r->syscall != NULL && r->syscall->blocked != NULL)
    rc = add(t, report, NULL, r->syscall->blocked);
  else if (r->stw != NULL)
    for (size_t i = 0; rc == TB_OK && i < r->stw->n_reasons; i++)
      if (r->stw->reasons[i]->stopped != NULL)
        rc = add(t, report, r->stw->reasons[i]->id, r->stw->reasons[i]->stopped);
  tb_arena_reset(&t->arena);
  return rc;
}

/* --- one series a name ------------------------------------------------------------------------- */

/* A program's series together, the newest stream's first. */
static int by_program(const void *a, const void *b) {
  const struct series *x = a, *y = b;
  int order = (int)x->family - (int)y->family;

  if (order == 0) order = strcmp(x->service, y->service);
  if (order == 0) order = strcmp(x->instance, y->instance);
  if (order == 0) order = (x->order < y->order) - (x->order > y->order);
  return order != 0 ? order : strcmp(x->reason, y->reason);
}

static bool same_program(const struct series *a, const struct series *b) {
  return a->family == b->family && strcmp(a->service, b->service) == 0 &&
         strcmp(a->instance, b->instance) == 0;
}

static void drop_older_streams(struct table *t) {
  size_t kept = 0, newest = 0;

  for (size_t i = 0; i < t->n; i++) {
    if (i == 0 || !same_program(&t->series[newest], &t->series[i])) newest = i;
    if (memcmp(t->series[newest].stream, t->series[i].stream, TC_REPORT_STREAM_BYTES) != 0)
      continue;
    t->series[kept] = t->series[i];
    if (newest == i) newest = kept;
    kept++;
  }
  t->n = kept;
}

static int by_name(const void *a, const void *b) {
  const struct series *x = a, *y = b;
  int order = (int)x->family - (int)y->family;

  if (order == 0) order = strcmp(x->service, y->service);
  if (order == 0) order = strcmp(x->instance, y->instance);
  return order != 0 ? order : strcmp(x->reason, y->reason);
}

/* Series of one name, such as two reasons that both became "other": counts add up, of quantiles the
 * worse is shown. */
static void merge_same(struct table *t) {
  size_t kept = 0;

  if (t->n > 0) qsort(t->series, t->n, sizeof *t->series, by_name);
  for (size_t i = 0; i < t->n; i++) {
    struct series *s = &t->series[i], *last = kept > 0 ? &t->series[kept - 1] : NULL;

    if (last == NULL || by_name(last, s) != 0) {
      t->series[kept++] = *s;
      continue;
    }
#define WORSE(field) last->field = s->field > last->field ? s->field : last->field
    last->count += s->count;
    last->total_ns += s->total_ns;
    WORSE(p50_ns);
    WORSE(p90_ns);
    WORSE(p99_ns);
#undef WORSE
  }
  t->n = kept;
}

/* --- text -------------------------------------------------------------------------------------- */

static void write_line(struct tb_buf *out, const struct series *s, const char *suffix,
                       const char *quantile) {
  tb_buf_text(out, families[s->family].name);
  tb_buf_printf(out, "%s{service=\"%s\",instance=\"%s\"", suffix, s->service, s->instance);
  if (s->reason[0] != '\0') tb_buf_printf(out, ",reason=\"%s\"", s->reason);
  if (quantile != NULL) tb_buf_printf(out, ",quantile=\"%s\"", quantile);
  tb_buf_text(out, "} ");
}

static void write_seconds(struct tb_buf *out, uint64_t ns) {
  tb_buf_printf(out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
}

static void write_series(struct tb_buf *out, const struct series *s, bool quantiles) {
  const struct {
    const char *quantile;
    uint64_t ns;
  } rows[] = { { "0.5", s->p50_ns }, { "0.9", s->p90_ns }, { "0.99", s->p99_ns } };

  for (size_t i = 0; quantiles && i < sizeof rows / sizeof rows[0]; i++) {
    write_line(out, s, "", rows[i].quantile);
    write_seconds(out, rows[i].ns);
  }
  write_line(out, s, "_sum", NULL);
  write_seconds(out, s->total_ns);
  write_line(out, s, "_count", NULL);
  tb_buf_printf(out, "%" PRIu64 "\n", s->count);
}

static void write_table(struct tb_buf *out, struct table *t) {
  bool quantiles = t->n * LINES_WITH_QUANTILES <= TC_PEER_SERIES_MAX;
  size_t room = TC_PEER_SERIES_MAX / (quantiles ? LINES_WITH_QUANTILES : LINES_WITHOUT), at = 0;

  if (t->n > room) {
    for (size_t i = 0; i < t->n; i++) strcpy(t->series[i].instance, "other");
    merge_same(t);
  }
  for (unsigned f = 0; f < sizeof families / sizeof families[0]; f++) {
    tc_metrics_head(out, families[f].name, "summary", families[f].text);
    for (; at < t->n && t->series[at].family == f; at++) {
      if (at < room)
        write_series(out, &t->series[at], quantiles);
      else
        t->left_out++;
    }
  }
  tc_metrics_head(out, "tracecollect_peer_series_left_out", "gauge",
                  "Series of traced programs beyond what is shown.");
  tb_buf_printf(out, "tracecollect_peer_series_left_out %zu\n", t->left_out);
}

tb_rc tc_metrics_peers(struct tb_buf *out, struct tc_reports *reports) {
  struct table t = { .n = 0 };
  tb_rc rc = TB_OK;

  tb_mem_init(&t.mem, tb_mem_libc, NULL, VIEW_MEMORY_MAX);
  tb_arena_init(&t.arena, &t.mem, 64 << 10);
  for (unsigned f = 0; rc == TB_OK && f < sizeof families / sizeof families[0]; f++) {
    struct tc_report_select select = { .kind = families[f].kind, .window = "all" };

    t.family = f;
    rc = tc_reports_collect(reports, &select, add_report, &t);
  }
  tb_arena_fini(&t.arena);
  if (rc == TB_OK) {
    if (t.n > 0) qsort(t.series, t.n, sizeof *t.series, by_program);
    drop_older_streams(&t);
    merge_same(&t);
    write_table(out, &t);
  }
  free(t.series);
  return rc;
}
