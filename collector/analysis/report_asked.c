/* SPDX-License-Identifier: Apache-2.0 */
/* A reader registers with each stream what it waits for, in one array of its own, and unregisters when it leaves. A stream
 * with missing reports is in its maker's queue until the maker has taken the set. */
#include <stdlib.h>

#include "base/clock.h"
#include "collector/analysis/report_private.h"

static bool is_empty(const struct tc_report_set *set) {
  uint32_t any = 0;

  for (unsigned w = 0; w < TO_WINDOWS; w++) any |= set->kinds[w];
  return any == 0;
}

static struct tc_report_set both(const struct tc_report_set *a, const struct tc_report_set *b) {
  struct tc_report_set set;

  for (unsigned w = 0; w < TO_WINDOWS; w++) set.kinds[w] = a->kinds[w] & b->kinds[w];
  return set;
}

static void add_set(struct tc_report_set *into, const struct tc_report_set *set) {
  for (unsigned w = 0; w < TO_WINDOWS; w++) into->kinds[w] |= set->kinds[w];
}

static uint32_t all_kinds(void) {
  return (uint32_t)((UINT64_C(1) << TO_ANALYSIS_KINDS) - 1);
}

/* An unknown name selects nothing. */
static struct tc_report_set selected(const struct tc_report_select *select) {
  uint32_t kinds = select->kinds != 0 ? select->kinds : all_kinds();
  struct tc_report_set set = { { 0 } };
  enum to_analysis_kind kind;
  enum to_window window;

  if (select->kind != NULL && select->kind[0] != '\0')
    kinds &= to_analysis_find(select->kind, &kind) ? UINT32_C(1) << kind : 0;
  if (select->window == NULL || select->window[0] == '\0') {
    for (unsigned w = 0; w < TO_WINDOWS; w++) set.kinds[w] = kinds;
  } else if (to_window_find(select->window, &window)) {
    set.kinds[window] = kinds;
  }
  return set;
}

static void finish_ask(struct tc_reports *reports, struct tc__report_ask *ask) {
  LIST_REMOVE(ask, of_stream);
  ask->missing = (struct tc_report_set){ { 0 } };
  if (--ask->wait->missing == 0) pthread_cond_broadcast(&reports->answered);
}

static void ask_stream(struct tc__report_stream *stream, const struct tc_report_set *set,
                       struct tc__report_wait *wait) {
  struct tc_report_set missing = both(set, &stream->outdated);
  struct tc_report_maker *maker = stream->maker;

  if (maker == NULL || is_empty(&missing)) return;
  struct tc__report_ask *ask = &wait->asks[wait->n++];
  *ask = (struct tc__report_ask){ .wait = wait, .missing = missing };
  LIST_INSERT_HEAD(&stream->asks, ask, of_stream);
  wait->missing++;
  add_set(&stream->asked, &missing);
  if (stream->in_line) return;
  stream->in_line = true;
  TAILQ_INSERT_TAIL(&maker->asked, stream, in_asked);
  maker->wake(maker->self);
}

static void ask_all(struct tc_reports *reports, const struct tc_report_select *select,
                    struct tc__report_wait *wait) {
  struct tc_report_set set = selected(select);
  struct tc__report_stream *s = TAILQ_FIRST(&reports->all);

  if (select->stream != NULL) {
    s = tc__reports_find(reports, select->stream);
    if (s != NULL && tc__report_stream_fits(select, s)) ask_stream(s, &set, wait);
    return;
  }
  for (; s != NULL; s = TAILQ_NEXT(s, all))
    if (tc__report_stream_fits(select, s)) ask_stream(s, &set, wait);
}

tb_rc tc__reports_ask(struct tc_reports *reports, const struct tc_report_select *select) {
  size_t room = select->stream != NULL ? 1 : reports->streams + 1;
  struct tc__report_wait wait = { .asks = calloc(room, sizeof *wait.asks) };
  struct timespec end = tc_from_now(select->wait_ms != 0 ? select->wait_ms : TC_REPORTS_WAIT_MS);

  if (wait.asks == NULL) return TB_NOMEM;
  ask_all(reports, select, &wait);
  while (wait.missing > 0 &&
         pthread_cond_timedwait(&reports->answered, &reports->lock, &end) == 0) {
  }
  for (size_t i = 0; i < wait.n && wait.missing > 0; i++)
    if (!is_empty(&wait.asks[i].missing)) finish_ask(reports, &wait.asks[i]);
  free(wait.asks);
  return TB_OK;
}

void tc__reports_answer(struct tc_reports *reports, struct tc__report_stream *stream,
                        enum to_analysis_kind kind, enum to_window window) {
  uint32_t bit = UINT32_C(1) << kind;
  struct tc__report_ask *next;

  stream->outdated.kinds[window] &= ~bit;
  stream->asked.kinds[window] &= ~bit;
  for (struct tc__report_ask *ask = LIST_FIRST(&stream->asks); ask != NULL; ask = next) {
    next = LIST_NEXT(ask, of_stream);
    ask->missing.kinds[window] &= ~bit;
    if (is_empty(&ask->missing)) finish_ask(reports, ask);
  }
}

static void leave_line(struct tc__report_stream *stream) {
  if (!stream->in_line) return;
  stream->in_line = false;
  TAILQ_REMOVE(&stream->maker->asked, stream, in_asked);
}

void tc__reports_leave(struct tc_reports *reports, struct tc__report_stream *stream) {
  if (stream->maker == NULL) return;
  while (!LIST_EMPTY(&stream->asks)) finish_ask(reports, LIST_FIRST(&stream->asks));
  leave_line(stream);
  LIST_REMOVE(stream, of_maker);
  stream->maker = NULL;
  stream->outdated = stream->asked = (struct tc_report_set){ { 0 } };
}

void tc_reports_missed(struct tc_reports *reports, const unsigned char *stream,
                       enum to_analysis_kind kind, enum to_window window) {
  pthread_mutex_lock(&reports->lock);
  struct tc__report_stream *s = tc__reports_find(reports, stream);
  if (s != NULL) tc__reports_answer(reports, s, kind, window);
  pthread_mutex_unlock(&reports->lock);
}

struct tc_report_set tc_reports_outdated(struct tc_reports *reports, const unsigned char *stream) {
  struct tc_report_set set = { { 0 } };

  pthread_mutex_lock(&reports->lock);
  const struct tc__report_stream *s = tc__reports_find(reports, stream);
  if (s != NULL) set = s->outdated;
  pthread_mutex_unlock(&reports->lock);
  return set;
}

static void outdate(struct tc_report_maker *maker, struct tc__report_stream *stream, uint32_t ref) {
  if (stream->maker != maker) {
    tc__reports_leave(maker->reports, stream);
    stream->maker = maker;
    LIST_INSERT_HEAD(&maker->streams, stream, of_maker);
  }
  stream->ref = ref;
  for (unsigned w = 0; w < TO_WINDOWS; w++) stream->outdated.kinds[w] = all_kinds();
}

tb_rc tc_reports_outdate(struct tc_report_maker *maker, const unsigned char *stream,
                         const char *service, const char *instance, uint32_t ref) {
  struct tc_reports *reports = maker->reports;
  struct tc__report_stream *s;

  pthread_mutex_lock(&reports->lock);
  tb_rc rc = tc__reports_stream(reports, stream, service, instance, &s);
  if (rc == TB_OK) outdate(maker, s, ref);
  pthread_mutex_unlock(&reports->lock);
  return rc;
}

bool tc_reports_asked(struct tc_report_maker *maker, uint32_t *out_ref, struct tc_report_set *out) {
  struct tc_reports *reports = maker->reports;

  pthread_mutex_lock(&reports->lock);
  struct tc__report_stream *s = TAILQ_FIRST(&maker->asked);
  if (s != NULL) {
    leave_line(s);
    *out_ref = s->ref;
    *out = s->asked;
  }
  pthread_mutex_unlock(&reports->lock);
  return s != NULL;
}

tb_rc tc_report_maker_new(struct tc_reports *reports, void (*wake)(void *self), void *self,
                          struct tc_report_maker **out) {
  struct tc_report_maker *maker = calloc(1, sizeof *maker);

  if (maker == NULL) return TB_NOMEM;
  maker->reports = reports;
  maker->wake = wake;
  maker->self = self;
  TAILQ_INIT(&maker->asked);
  LIST_INIT(&maker->streams);
  *out = maker;
  return TB_OK;
}

void tc_report_maker_free(struct tc_report_maker *maker) {
  if (maker == NULL) return;
  struct tc_reports *reports = maker->reports;

  pthread_mutex_lock(&reports->lock);
  while (!LIST_EMPTY(&maker->streams)) tc__reports_leave(reports, LIST_FIRST(&maker->streams));
  pthread_mutex_unlock(&reports->lock);
  free(maker);
}
