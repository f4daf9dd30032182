/* SPDX-License-Identifier: Apache-2.0 */
/* Streams are in a list in the order of their first publication, and in a hash table by id; each has a short list of reports. Ended
 * streams are also in a list of their own and are dropped first, then the older half of the reports that can be made again. A report
 * is one block with a count of holders: the table, and every reader whose snapshot contains it. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "collector/analysis/report_private.h"
#include "online/window/window.h"
#include "proto/get.h"

enum { BUCKETS_MIN = 256, UNTIL_WALL = 9 /* StreamReport.until_wall_ns */ };

static void snapshot_release(struct tc__report_snapshot *s) {
  if (atomic_fetch_sub_explicit(&s->holders, 1, memory_order_acq_rel) == 1) free(s);
}

/* --- under the lock --------------------------------------------------------------------------- */

static void table_drop_report(struct tc_reports *reports, struct tc__report_snapshot **at) {
  struct tc__report_snapshot *gone = *at;

  *at = gone->next;
  reports->bytes -= gone->len;
  snapshot_release(gone);
}

/* Peers choose the ids, so the factors are secret. */
static struct tc__report_stream **table_bucket(const struct tc_reports *reports,
                                               const unsigned char *id) {
  uint32_t part[TC__REPORT_ID_PARTS];
  uint64_t hash = 0;

  memcpy(part, id, sizeof part);
  for (unsigned i = 0; i < TC__REPORT_ID_PARTS; i++) hash += reports->factors[i] * part[i];
  return &reports->buckets[(hash >> 32) & (reports->bucket_count - 1)];
}

static void table_link(struct tc_reports *reports, struct tc__report_stream *s) {
  struct tc__report_stream **bucket = table_bucket(reports, s->id);

  s->chain = *bucket;
  *bucket = s;
}

/* If memory cannot be allocated, only the chains grow longer. */
static void table_grow(struct tc_reports *reports) {
  size_t count = reports->bucket_count * 2;
  struct tc__report_stream **buckets = calloc(count, sizeof(struct tc__report_stream *));

  if (buckets == NULL) return;
  free(reports->buckets);
  reports->buckets = buckets;
  reports->bucket_count = count;
  for (struct tc__report_stream *s = TAILQ_FIRST(&reports->all); s != NULL; s = TAILQ_NEXT(s, all))
    table_link(reports, s);
}

struct tc__report_stream *tc__reports_find(const struct tc_reports *reports,
                                           const unsigned char *id) {
  struct tc__report_stream *s = *table_bucket(reports, id);

  while (s != NULL && memcmp(s->id, id, sizeof s->id) != 0) s = s->chain;
  return s;
}

static void table_open(struct tc_reports *reports, struct tc__report_stream *s) {
  if (s->ended_wall_ns == 0) return;
  s->ended_wall_ns = 0;
  TAILQ_REMOVE(&reports->closed_ones, s, closed_ones);
  reports->closed--;
}

static void table_close(struct tc_reports *reports, struct tc__report_stream *s) {
  if (s->ended_wall_ns != 0) return;
  s->ended_wall_ns = tc_wall_ns();
  TAILQ_INSERT_TAIL(&reports->closed_ones, s, closed_ones);
  reports->closed++;
}

static void table_drop_stream(struct tc_reports *reports, struct tc__report_stream *gone) {
  struct tc__report_stream **link = table_bucket(reports, gone->id);

  tc__reports_leave(reports, gone);
  while (gone->reports != NULL) table_drop_report(reports, &gone->reports);
  table_open(reports, gone);
  while (*link != gone) link = &(*link)->chain;
  *link = gone->chain;
  TAILQ_REMOVE(&reports->all, gone, all);
  reports->streams--;
  free(gone);
}

static bool table_drop_oldest_closed(struct tc_reports *reports) {
  if (TAILQ_EMPTY(&reports->closed_ones)) return false;
  table_drop_stream(reports, TAILQ_FIRST(&reports->closed_ones));
  return true;
}

/* Returns when the oldest and the newest report of a live stream was made. */
static void table_made_since(const struct tc_reports *reports, uint64_t *out_first,
                             uint64_t *out_last) {
  const struct tc__report_stream *s;

  *out_first = UINT64_MAX;
  *out_last = 0;
  TAILQ_FOREACH(s, &reports->all, all)
  for (const struct tc__report_snapshot *r = s->reports; r != NULL && s->maker != NULL;
       r = r->next) {
    if (r->published_ns < *out_first) *out_first = r->published_ns;
    if (r->published_ns > *out_last) *out_last = r->published_ns;
  }
}

static bool can_be_made(const struct tc__report_stream *stream,
                        const struct tc__report_snapshot *report, enum to_window *out_window) {
  return stream->maker != NULL && report->kinds != 0 && to_window_find(report->window, out_window);
}

/* Drops the older ones of the reports that can be made again, but not fresh. */
static void table_drop_made(struct tc_reports *reports, const struct tc__report_snapshot *fresh) {
  struct tc__report_stream *s;
  uint64_t first, last;

  table_made_since(reports, &first, &last);
  TAILQ_FOREACH(s, &reports->all, all)
  for (struct tc__report_snapshot **at = &s->reports; *at != NULL;) {
    enum to_window window;
    if (*at != fresh && (*at)->published_ns <= first + (last - first) / 2 &&
        can_be_made(s, *at, &window)) {
      s->outdated.kinds[window] |= (*at)->kinds;
      table_drop_report(reports, at);
    } else {
      at = &(*at)->next;
    }
  }
}

static struct tc__report_stream *table_add(struct tc_reports *reports, const unsigned char *id,
                                           const char *service, const char *instance) {
  struct tc__report_stream *s = calloc(1, sizeof *s);

  if (s == NULL) return NULL;
  memcpy(s->id, id, sizeof s->id);
  strncpy(s->service, service, TC__REPORT_NAME_MAX);
  strncpy(s->instance, instance, TC__REPORT_NAME_MAX);
  TAILQ_INSERT_TAIL(&reports->all, s, all);
  table_link(reports, s);
  if (++reports->streams > reports->bucket_count) table_grow(reports);
  return s;
}

tb_rc tc__reports_stream(struct tc_reports *reports, const unsigned char *id, const char *service,
                         const char *instance, struct tc__report_stream **out) {
  struct tc__report_stream *s = tc__reports_find(reports, id);

  if (s == NULL) s = table_add(reports, id, service, instance);
  if (s == NULL) return TB_NOMEM;
  table_open(reports, s); /* a stream that resumes must not be dropped for its own report */
  *out = s;
  return TB_OK;
}

/* Sorted by kind and window, so that every answer has the same order. */
static void table_put(struct tc_reports *reports, struct tc__report_stream *stream,
                      struct tc__report_snapshot *fresh) {
  struct tc__report_snapshot **at = &stream->reports;
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

tb_rc tc_reports_new(size_t bytes_max, struct tc_reports **out) {
  struct tc_reports *reports = calloc(1, sizeof *reports);

  if (reports == NULL) return TB_NOMEM;
  pthread_mutex_init(&reports->lock, NULL);
  tc_cond_init(&reports->answered);
  TAILQ_INIT(&reports->all);
  TAILQ_INIT(&reports->closed_ones);
  reports->bucket_count = BUCKETS_MIN;
  reports->buckets = calloc(BUCKETS_MIN, sizeof(struct tc__report_stream *));
  if (reports->buckets == NULL) {
    tc_reports_free(reports);
    return TB_NOMEM;
  }
  if (getrandom(reports->factors, sizeof reports->factors, 0) != (ssize_t)sizeof reports->factors) {
    tc_reports_free(reports);
    return TB_IO;
  }
  reports->bytes_max = bytes_max;
  *out = reports;
  return TB_OK;
}

void tc_reports_free(struct tc_reports *reports) {
  if (reports == NULL) return;
  while (!TAILQ_EMPTY(&reports->all)) table_drop_stream(reports, TAILQ_FIRST(&reports->all));
  free(reports->buckets);
  pthread_cond_destroy(&reports->answered);
  pthread_mutex_destroy(&reports->lock);
  free(reports);
}

static uint64_t until_wall_of(const struct tc_report *report) {
  ProtobufCBinaryData at = { report->len, (uint8_t *)(uintptr_t)report->bytes };
  struct tp_field field;

  while (tp_next_field(&at, &field))
    if (field.number == UNTIL_WALL) return field.value;
  return 0;
}

static struct tc__report_snapshot *snapshot_of(const struct tc_report *report) {
  struct tc__report_snapshot *fresh = malloc(sizeof *fresh + report->len);
  enum to_analysis_kind kind;

  if (fresh == NULL) return NULL;
  memset(fresh, 0, sizeof *fresh);
  atomic_init(&fresh->holders, 1);
  fresh->published_ns = tc_mono_ns();
  fresh->until_wall_ns = until_wall_of(report);
  fresh->len = report->len;
  strncpy(fresh->kind, report->kind, TC__REPORT_KIND_MAX);
  strncpy(fresh->window, report->window, TC__REPORT_WINDOW_MAX);
  if (to_analysis_find(report->kind, &kind)) fresh->kinds = UINT32_C(1) << kind;
  memcpy(fresh->bytes, report->bytes, report->len);
  return fresh;
}

/* fresh: NULL if it could not be allocated. */
static tb_rc table_take(struct tc_reports *reports, const struct tc_report *report,
                        struct tc__report_snapshot *fresh) {
  struct tc__report_stream *stream;
  enum to_analysis_kind kind;
  enum to_window window;

  if (fresh == NULL) return TB_NOMEM;
  tb_rc rc =
      tc__reports_stream(reports, report->stream, report->service, report->instance, &stream);
  if (rc != TB_OK) {
    snapshot_release(fresh);
    return rc;
  }
  table_put(reports, stream, fresh);
  while (reports->bytes > reports->bytes_max && table_drop_oldest_closed(reports)) {
  }
  if (reports->bytes > reports->bytes_max) table_drop_made(reports, fresh);
  if (reports->bytes > reports->bytes_max) {
    struct tc__report_snapshot **at = &stream->reports;

    while (*at != fresh) at = &(*at)->next;
    table_drop_report(reports, at);
    rc = TB_BUDGET;
  }
  if (to_analysis_find(report->kind, &kind) && to_window_find(report->window, &window))
    tc__reports_answer(reports, stream, kind, window);
  return rc;
}

tb_rc tc_reports_publish(struct tc_reports *reports, const struct tc_report *report) {
  struct tc__report_snapshot *fresh = snapshot_of(report);

  pthread_mutex_lock(&reports->lock);
  tb_rc rc = table_take(reports, report, fresh);
  pthread_mutex_unlock(&reports->lock);
  return rc;
}

void tc_reports_close(struct tc_reports *reports, const unsigned char *stream) {
  pthread_mutex_lock(&reports->lock);
  struct tc__report_stream *s = tc__reports_find(reports, stream);
  if (s != NULL) {
    tc__reports_leave(reports, s);
    table_close(reports, s);
    if (reports->closed > TC_REPORTS_CLOSED_MAX) (void)table_drop_oldest_closed(reports);
  }
  pthread_mutex_unlock(&reports->lock);
}

/* --- snapshots -------------------------------------------------------------------------------- */

struct held {
  struct tc__report_snapshot *snapshot;
  unsigned char id[TC_REPORT_STREAM_BYTES];
  char service[TC__REPORT_NAME_MAX + 1], instance[TC__REPORT_NAME_MAX + 1];
  uint64_t ended_wall_ns;
};

static bool text_fits(const char *want, const char *have) {
  return want == NULL || want[0] == '\0' || strcmp(want, have) == 0;
}

bool tc__report_stream_fits(const struct tc_report_select *select,
                            const struct tc__report_stream *s) {
  return text_fits(select->service, s->service) && text_fits(select->instance, s->instance);
}

static bool report_fits(const struct tc_report_select *select,
                        const struct tc__report_snapshot *r) {
  if (select->kinds != 0 && r->kinds != 0 && (select->kinds & r->kinds) == 0) return false;
  return text_fits(select->kind, r->kind) && text_fits(select->window, r->window);
}

static size_t walk_stream(struct tc__report_stream *s, const struct tc_report_select *select,
                          struct held *held) {
  size_t n = 0;

  if (s == NULL || !tc__report_stream_fits(select, s)) return 0;
  for (struct tc__report_snapshot *r = s->reports; r != NULL; r = r->next) {
    if (!report_fits(select, r)) continue;
    if (held != NULL) {
      atomic_fetch_add_explicit(&r->holders, 1, memory_order_relaxed);
      held[n].snapshot = r;
      held[n].ended_wall_ns = s->ended_wall_ns;
      memcpy(held[n].id, s->id, sizeof s->id);
      memcpy(held[n].service, s->service, sizeof s->service);
      memcpy(held[n].instance, s->instance, sizeof s->instance);
    }
    n++;
  }
  return n;
}

/* Counts the reports that fit; takes them too if held != NULL. Called twice under one lock. */
static size_t table_walk(struct tc_reports *reports, const struct tc_report_select *select,
                         struct held *held) {
  size_t n = 0;

  if (select->stream != NULL)
    return walk_stream(tc__reports_find(reports, select->stream), select, held);
  for (struct tc__report_stream *s = TAILQ_FIRST(&reports->all); s != NULL; s = TAILQ_NEXT(s, all))
    n += walk_stream(s, select, held != NULL ? held + n : NULL);
  return n;
}

size_t tc_reports_live(struct tc_reports *reports, const struct tc_report_select *select) {
  const struct tc__report_stream *s;
  size_t n = 0;

  pthread_mutex_lock(&reports->lock);
  TAILQ_FOREACH(s, &reports->all, all)
  n += s->ended_wall_ns == 0 && tc__report_stream_fits(select, s);
  pthread_mutex_unlock(&reports->lock);
  return n;
}

static uint64_t newest_of(const struct held *held, size_t n) {
  uint64_t newest_ns = 0;

  for (size_t i = 0; i < n; i++)
    if (held[i].snapshot->until_wall_ns > newest_ns) newest_ns = held[i].snapshot->until_wall_ns;
  return newest_ns;
}

bool tc_report_is_past(const struct tc_report *report) {
  enum to_window window;

  if (report->until_wall_ns == 0 || !to_window_find(report->window, &window) ||
      window == TO_WINDOW_ALL)
    return false;
  return report->newest_wall_ns - report->until_wall_ns > (uint64_t)to_window_length(window);
}

tb_rc tc_reports_collect(struct tc_reports *reports, const struct tc_report_select *select,
                         tc_report_fn *each, void *self) {
  struct held *held;
  size_t n;

  pthread_mutex_lock(&reports->lock);
  tb_rc rc = tc__reports_ask(reports, select);
  n = table_walk(reports, select, NULL);
  held = calloc(n + 1, sizeof *held);
  if (held != NULL) table_walk(reports, select, held);
  pthread_mutex_unlock(&reports->lock);
  if (held == NULL) return TB_NOMEM;
  uint64_t newest_ns = newest_of(held, n);

  for (size_t i = 0; i < n; i++) {
    struct tc__report_snapshot *s = held[i].snapshot;
    struct tc_report report = {
      .stream = held[i].id,
      .service = held[i].service,
      .instance = held[i].instance,
      .kind = s->kind,
      .window = s->window,
      .bytes = s->bytes,
      .len = s->len,
      .ended_wall_ns = held[i].ended_wall_ns,
      .published_ns = s->published_ns,
      .until_wall_ns = s->until_wall_ns,
      .newest_wall_ns = newest_ns,
    };

    if (rc == TB_OK) rc = each(self, &report);
    snapshot_release(s);
  }
  free(held);
  return rc;
}
