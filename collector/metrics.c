/* SPDX-License-Identifier: Apache-2.0 */
/* Our own figures are a walk over metrics.def. Those of traced programs come out of the reports of
 * window "all", whose counts only rise. A program that was restarted under its old name is a new
 * stream with counts from zero: the newest stream of a service and instance is shown, so a scraper
 * sees an ordinary counter reset. */
#include "collector/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/report.pb-c.h"
#include "proto/unpack.h"

enum { REPORT_UNPACKED_MAX = 8 << 20, LABEL_MAX = 64 };

enum metric_type { COUNTER, GAUGE, SECONDS_COUNTER, SECONDS_PEAK };

static void write_head(struct tb_buf *out, const char *name, const char *type, const char *text) {
  tb_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, text, name, type);
}

static void write_metric(struct tb_buf *out, enum metric_type type, const char *name,
                         const char *text, uint64_t value) {
  bool counts = type == COUNTER || type == SECONDS_COUNTER;

  write_head(out, name, counts ? "counter" : "gauge", text);
  if (type == COUNTER || type == GAUGE)
    tb_buf_printf(out, "%s %" PRIu64 "\n", name, value);
  else
    tb_buf_printf(out, "%s %.9f\n", name, (double)value / 1e9);
}

static uint64_t sum_of_loops(struct tc_metrics *const *loops, size_t n, size_t field_at,
                             enum metric_type type) {
  uint64_t sum = 0;

  for (size_t i = 0; i < n; i++) {
    atomic_ullong *m = (atomic_ullong *)((char *)loops[i] + field_at);
    uint64_t value = atomic_load_explicit(m, memory_order_relaxed);

    if (type != SECONDS_PEAK)
      sum += value;
    else if (value > sum)
      sum = value;
  }
  return sum;
}

static void write_ours(struct tb_buf *out, struct tc_metrics *const *loops, size_t n,
                       const struct tc_store_stats *store) {
#define TC_METRIC(type, field, text)                                                               \
  write_metric(out, type, "tracecollect_" #field, text,                                            \
               sum_of_loops(loops, n, offsetof(struct tc_metrics, field), type));
#define TC_STORE_METRIC(type, name, field, text)                                                   \
  write_metric(out, type, "tracecollect_" #name, text, (uint64_t)store->field);
#include "collector/metrics.def"
#undef TC_METRIC
#undef TC_STORE_METRIC
}

/* --- traced programs --------------------------------------------------------------------------- */

struct series {
  unsigned char stream[TC_REPORT_STREAM_BYTES];
  char service[LABEL_MAX + 1], instance[LABEL_MAX + 1], reason[LABEL_MAX + 1];
  Tracecollect__V1__Distribution found; /* plain numbers */
};

struct table {
  struct series *series;
  size_t n, left_out;
};

/* [A-Za-z0-9._:-]{1,64}, or "other": no peer writes our text for us. */
static void label_set(char out[LABEL_MAX + 1], const char *text) {
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
static void reason_set(char out[LABEL_MAX + 1], const char *id) {
  char text[2 * LABEL_MAX];
  size_t len = 0;

  if (id != NULL && strncmp(id, "/stw/", 5) == 0) id += 5;
  for (; id != NULL && id[len] != '\0' && len < sizeof text - 1; len++)
    text[len] = id[len] == '/' ? '.' : id[len];
  text[len] = '\0';
  label_set(out, text);
}

static void table_drop_older(struct table *t, const struct series *newer) {
  size_t kept = 0;

  for (size_t i = 0; i < t->n; i++) {
    const struct series *s = &t->series[i];
    bool older = strcmp(s->service, newer->service) == 0 &&
                 strcmp(s->instance, newer->instance) == 0 &&
                 memcmp(s->stream, newer->stream, sizeof s->stream) != 0;

    if (!older) t->series[kept++] = *s;
  }
  t->n = kept;
}

static struct series *table_find(struct table *t, const struct series *like) {
  for (size_t i = 0; i < t->n; i++) {
    struct series *s = &t->series[i];

    if (strcmp(s->service, like->service) == 0 && strcmp(s->instance, like->instance) == 0 &&
        strcmp(s->reason, like->reason) == 0)
      return s;
  }
  return NULL;
}

/* Two reasons that both became "other" are one series: counts add up, quantiles take the worse. */
static void table_add(struct table *t, const struct series *fresh) {
  struct series *same;

  table_drop_older(t, fresh);
  same = table_find(t, fresh);
  if (same == NULL) {
    if (t->n == TC_PEER_SERIES_MAX)
      t->left_out++;
    else
      t->series[t->n++] = *fresh;
    return;
  }
#define WORSE(field)                                                                               \
  if (fresh->found.field > same->found.field) same->found.field = fresh->found.field
  same->found.count += fresh->found.count;
  same->found.total_ns += fresh->found.total_ns;
  WORSE(p50_ns);
  WORSE(p90_ns);
  WORSE(p99_ns);
#undef WORSE
}

static tb_rc add_report(void *self, const struct tc_report *report) {
  struct table *t = self;
  struct tb_mem mem;
  struct tb_arena arena;
  struct series s = { .reason = "" };

  tb_mem_init(&mem, tb_mem_libc, NULL, REPORT_UNPACKED_MAX);
  tb_arena_init(&arena, &mem, 16 << 10);
  ProtobufCAllocator allocator = tp_arena_allocator(&arena);
  Tracecollect__V1__StreamReport *r =
      tracecollect__v1__stream_report__unpack(&allocator, report->len, report->bytes);

  memcpy(s.stream, report->stream, sizeof s.stream);
  label_set(s.service, report->service);
  label_set(s.instance, report->instance);
  if (r == NULL) {
    t->left_out++;
  } else if (r->syscall != NULL && r->syscall->blocked != NULL) {
    s.found = *r->syscall->blocked;
    table_add(t, &s);
  } else if (r->stw != NULL) {
    for (size_t i = 0; i < r->stw->n_reasons; i++) {
      if (r->stw->reasons[i]->stopped == NULL) continue;
      s.found = *r->stw->reasons[i]->stopped;
      reason_set(s.reason, r->stw->reasons[i]->id);
      table_add(t, &s);
    }
  }
  tb_arena_fini(&arena);
  return TB_OK;
}

static void write_labels(struct tb_buf *out, const struct series *s) {
  tb_buf_printf(out, "service=\"%s\",instance=\"%s\"", s->service, s->instance);
  if (s->reason[0] != '\0') tb_buf_printf(out, ",reason=\"%s\"", s->reason);
}

static void write_line(struct tb_buf *out, const struct series *s, const char *name,
                       const char *suffix, const char *quantile) {
  tb_buf_printf(out, "%s%s{", name, suffix);
  write_labels(out, s);
  if (quantile != NULL) tb_buf_printf(out, ",quantile=\"%s\"", quantile);
  tb_buf_text(out, "} ");
}

static void write_summary(struct tb_buf *out, const struct series *s, const char *name) {
  const struct {
    const char *quantile;
    uint64_t ns;
  } rows[] = { { "0.5", s->found.p50_ns },
               { "0.9", s->found.p90_ns },
               { "0.99", s->found.p99_ns } };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    write_line(out, s, name, "", rows[i].quantile);
    tb_buf_printf(out, "%.9f\n", (double)rows[i].ns / 1e9);
  }
  write_line(out, s, name, "_sum", NULL);
  tb_buf_printf(out, "%.9f\n", (double)s->found.total_ns / 1e9);
  write_line(out, s, name, "_count", NULL);
  tb_buf_printf(out, "%" PRIu64 "\n", s->found.count);
}

static const struct {
  const char *kind, *name, *text;
} families[] = {
  { "syscall", "trace_blocked_syscall_seconds", "System calls that lost their P, by program." },
  { "stw", "trace_stw_seconds", "Time the world was stopped, by program and reason." },
};

static tb_rc write_theirs(struct tb_buf *out, struct tc_reports *reports) {
  struct table t = { .series = calloc(TC_PEER_SERIES_MAX, sizeof *t.series) };
  size_t shown = 0, left_out = 0;
  tb_rc rc = t.series != NULL ? TB_OK : TB_NOMEM;

  for (size_t f = 0; rc == TB_OK && f < sizeof families / sizeof families[0]; f++) {
    struct tc_report_select select = { .kind = families[f].kind, .window = "all" };

    t.n = t.left_out = 0;
    rc = tc_reports_collect(reports, &select, add_report, &t);
    if (rc != TB_OK) break;
    write_head(out, families[f].name, "summary", families[f].text);
    for (size_t i = 0; i < t.n; i++) {
      if (shown < TC_PEER_SERIES_MAX)
        write_summary(out, &t.series[i], families[f].name);
      else
        left_out++;
      shown++;
    }
    left_out += t.left_out;
  }
  write_metric(out, GAUGE, "tracecollect_peer_series_left_out",
               "Series of traced programs beyond what is shown.", left_out);
  free(t.series);
  return rc;
}

tb_rc tc_metrics_text(struct tb_buf *out, struct tc_metrics *const *loops, size_t n,
                      const struct tc_store_stats *store, struct tc_reports *reports) {
  write_ours(out, loops, n, store);
  if (reports != NULL) TB_TRY(write_theirs(out, reports));
  return out->rc;
}
