/* SPDX-License-Identifier: Apache-2.0 */
/* A list of streams, each with a short list of reports. A report is one block with a count of its
 * holders: the table is one, every reader that found it in a snapshot is another. */
#include "collector/reports.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "collector/clock.h"

enum { REPORT_NAME_MAX = 64, REPORT_KIND_MAX = 31, REPORT_WINDOW_MAX = 15 };

struct snapshot {
  struct snapshot *next; /* of the same stream */
  atomic_uint holders;
  uint64_t published_ns;
  size_t len;
  char kind[REPORT_KIND_MAX + 1], window[REPORT_WINDOW_MAX + 1];
  unsigned char bytes[];
};

struct stream {
  struct stream *next; /* in order of first publication */
  unsigned char id[TC_REPORT_STREAM_BYTES];
  char service[REPORT_NAME_MAX + 1], instance[REPORT_NAME_MAX + 1];
  bool closed;
  struct snapshot *reports;
};

struct tc_reports {
  pthread_mutex_t lock;
  struct stream *first, **end;
  size_t bytes, bytes_max;
  unsigned closed;
};

static void snapshot_release(struct snapshot *s) {
  if (atomic_fetch_sub_explicit(&s->holders, 1, memory_order_acq_rel) == 1) free(s);
}

/* --- under the lock --------------------------------------------------------------------------- */

static void table_drop_report(struct tc_reports *reports, struct snapshot **at) {
  struct snapshot *gone = *at;

  *at = gone->next;
  reports->bytes -= gone->len;
  snapshot_release(gone);
}

static void table_drop_stream(struct tc_reports *reports, struct stream **at) {
  struct stream *gone = *at;

  while (gone->reports != NULL) table_drop_report(reports, &gone->reports);
  *at = gone->next;
  if (reports->end == &gone->next) reports->end = at;
  if (gone->closed) reports->closed--;
  free(gone);
}

static bool table_drop_oldest_closed(struct tc_reports *reports) {
  for (struct stream **at = &reports->first; *at != NULL; at = &(*at)->next) {
    if (!(*at)->closed) continue;
    table_drop_stream(reports, at);
    return true;
  }
  return false;
}

static struct stream *table_find(struct tc_reports *reports, const unsigned char *id) {
  for (struct stream *s = reports->first; s != NULL; s = s->next)
    if (memcmp(s->id, id, sizeof s->id) == 0) return s;
  return NULL;
}

static tb_rc table_stream(struct tc_reports *reports, const struct tc_report *report,
                          struct stream **out) {
  struct stream *s = table_find(reports, report->stream);

  if (s == NULL) {
    s = calloc(1, sizeof *s);
    if (s == NULL) return TB_NOMEM;
    memcpy(s->id, report->stream, sizeof s->id);
    strncpy(s->service, report->service, REPORT_NAME_MAX);
    strncpy(s->instance, report->instance, REPORT_NAME_MAX);
    *reports->end = s;
    reports->end = &s->next;
  }
  if (s->closed) { /* it came back: it may not give way to its own report */
    s->closed = false;
    reports->closed--;
  }
  *out = s;
  return TB_OK;
}

/* Kinds and windows stay in order of name, so that every answer lists them alike. */
static void table_put(struct tc_reports *reports, struct stream *stream, struct snapshot *fresh) {
  struct snapshot **at = &stream->reports;
  int order = -1;

  for (; *at != NULL; at = &(*at)->next) {
    order = strcmp((*at)->kind, fresh->kind);
    if (order == 0) order = strcmp((*at)->window, fresh->window);
    if (order >= 0) break;
  }
  if (*at != NULL && order == 0) table_drop_report(reports, at);
  fresh->next = *at;
  *at = fresh;
  reports->bytes += fresh->len;
}

/* --- public ----------------------------------------------------------------------------------- */

tb_rc tc_reports_new(size_t bytes_max, struct tc_reports **out) {
  struct tc_reports *reports = calloc(1, sizeof *reports);

  if (reports == NULL) return TB_NOMEM;
  pthread_mutex_init(&reports->lock, NULL);
  reports->end = &reports->first;
  reports->bytes_max = bytes_max;
  *out = reports;
  return TB_OK;
}

void tc_reports_free(struct tc_reports *reports) {
  if (reports == NULL) return;
  while (reports->first != NULL) table_drop_stream(reports, &reports->first);
  pthread_mutex_destroy(&reports->lock);
  free(reports);
}

tb_rc tc_reports_publish(struct tc_reports *reports, const struct tc_report *report) {
  struct snapshot *fresh = malloc(sizeof *fresh + report->len);
  struct stream *stream;
  tb_rc rc;

  if (fresh == NULL) return TB_NOMEM;
  memset(fresh, 0, sizeof *fresh);
  atomic_init(&fresh->holders, 1);
  fresh->published_ns = tc_mono_ns();
  fresh->len = report->len;
  strncpy(fresh->kind, report->kind, REPORT_KIND_MAX);
  strncpy(fresh->window, report->window, REPORT_WINDOW_MAX);
  memcpy(fresh->bytes, report->bytes, report->len);

  pthread_mutex_lock(&reports->lock);
  rc = table_stream(reports, report, &stream);
  if (rc == TB_OK) {
    table_put(reports, stream, fresh);
    while (reports->bytes > reports->bytes_max && table_drop_oldest_closed(reports)) {
    }
    if (reports->bytes > reports->bytes_max) {
      struct snapshot **at = &stream->reports;

      while (*at != fresh) at = &(*at)->next;
      table_drop_report(reports, at);
      rc = TB_BUDGET;
    }
    fresh = NULL;
  }
  pthread_mutex_unlock(&reports->lock);
  free(fresh);
  return rc;
}

void tc_reports_close(struct tc_reports *reports, const unsigned char *stream) {
  pthread_mutex_lock(&reports->lock);
  struct stream *s = table_find(reports, stream);
  if (s != NULL && !s->closed) {
    s->closed = true;
    reports->closed++;
    if (reports->closed > TC_REPORTS_CLOSED_MAX) (void)table_drop_oldest_closed(reports);
  }
  pthread_mutex_unlock(&reports->lock);
}

/* --- snapshots -------------------------------------------------------------------------------- */

struct held {
  struct snapshot *snapshot;
  unsigned char id[TC_REPORT_STREAM_BYTES];
  char service[REPORT_NAME_MAX + 1], instance[REPORT_NAME_MAX + 1];
  bool closed;
};

static bool text_fits(const char *want, const char *have) {
  return want == NULL || want[0] == '\0' || strcmp(want, have) == 0;
}

static bool stream_fits(const struct tc_report_select *select, const struct stream *s) {
  return (select->stream == NULL || memcmp(select->stream, s->id, sizeof s->id) == 0) &&
         text_fits(select->service, s->service) && text_fits(select->instance, s->instance);
}

static bool report_fits(const struct tc_report_select *select, const struct snapshot *r) {
  return text_fits(select->kind, r->kind) && text_fits(select->window, r->window);
}

/* Counts what fits, or with held != NULL takes it: called twice under one lock. */
static size_t table_walk(struct tc_reports *reports, const struct tc_report_select *select,
                         struct held *held) {
  size_t n = 0;

  for (struct stream *s = reports->first; s != NULL; s = s->next) {
    if (!stream_fits(select, s)) continue;
    for (struct snapshot *r = s->reports; r != NULL; r = r->next) {
      if (!report_fits(select, r)) continue;
      if (held != NULL) {
        atomic_fetch_add_explicit(&r->holders, 1, memory_order_relaxed);
        held[n].snapshot = r;
        held[n].closed = s->closed;
        memcpy(held[n].id, s->id, sizeof s->id);
        memcpy(held[n].service, s->service, sizeof s->service);
        memcpy(held[n].instance, s->instance, sizeof s->instance);
      }
      n++;
    }
  }
  return n;
}

tb_rc tc_reports_collect(struct tc_reports *reports, const struct tc_report_select *select,
                         tc_report_fn *each, void *self) {
  struct held *held;
  size_t n;
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&reports->lock);
  n = table_walk(reports, select, NULL);
  held = calloc(n + 1, sizeof *held);
  if (held != NULL) table_walk(reports, select, held);
  pthread_mutex_unlock(&reports->lock);
  if (held == NULL) return TB_NOMEM;

  for (size_t i = 0; i < n; i++) {
    struct snapshot *s = held[i].snapshot;
    struct tc_report report = {
      .stream = held[i].id,
      .service = held[i].service,
      .instance = held[i].instance,
      .kind = s->kind,
      .window = s->window,
      .bytes = s->bytes,
      .len = s->len,
      .closed = held[i].closed,
      .published_ns = s->published_ns,
    };

    if (rc == TB_OK) rc = each(self, &report);
    snapshot_release(s);
  }
  free(held);
  return rc;
}
