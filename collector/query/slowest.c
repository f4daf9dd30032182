/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which stream of a service has the slowest task or region of a type, from their reports. */
#include <string.h>

#include "collector/query/private.h"
#include "online/window/window.h"
#include "pack/report_read.h"
#include "proto/unpack.h"

enum { CHUNK_BYTES = 64 << 10 };

typedef Tracecollect__V1__StreamReport stream_report;

struct found {
  struct tc_query_slowest slowest;
  uint64_t ns;
  bool is_live;
};

struct search {
  struct tc_query_session *s;
  const char *type;
  uint64_t window_ns;    /* 0: since the begin */
  struct tb_arena arena; /* for one report */
  struct found found;
};

static tb_rc unpack(struct search *s, const struct tc_report *report, stream_report **out) {
  ProtobufCAllocator allocator = tp_arena_allocator(&s->arena);

  if (tc__query_is_stopping(s->s->query)) return TB_IO;
  tb_arena_reset(&s->arena);
  *out = tracecollect__v1__stream_report__unpack(&allocator, report->len, report->bytes);
  return *out != NULL ? TB_OK : TB_NOMEM;
}

static tb_rc take_report(void *self, const struct tc_report *report) {
  struct search *s = self;
  struct found *f = &s->found;
  stream_report *message;

  if (!tc__query_is_of_now(s->s, report)) return TB_OK;
  TB_TRY(unpack(s, report, &message));
  const Tracecollect__V1__Distribution *latency = tp_report_type_latency(message->report, s->type);
  bool is_live = report->ended_wall_ns == 0;
  if (latency == NULL || latency->count == 0 || message->until_wall_ns == 0) return TB_OK;
  if (!is_live && f->is_live) return TB_OK;
  if (f->is_live == is_live && latency->max_ns < f->ns) return TB_OK;
  uint64_t length = s->window_ns + latency->max_ns; /* the slowest has its begin in it */
  f->ns = latency->max_ns;
  f->is_live = is_live;
  memcpy(f->slowest.stream, report->stream, sizeof f->slowest.stream);
  f->slowest.until_wall_ns = message->until_wall_ns;
  f->slowest.from_wall_ns = s->window_ns == 0                  ? message->from_wall_ns
                            : message->until_wall_ns <= length ? 1
                                                               : message->until_wall_ns - length;
  return TB_OK;
}

static tb_rc search_reports(struct search *s, const char *service, const char *instance,
                            enum to_window window) {
  static const enum to_analysis_kind kinds[] = { TO_ANALYSIS_TASKS, TO_ANALYSIS_REGIONS };
  struct tc_reports *reports = s->s->query->env.reports;
  struct tc_report_select select = { .service = service,
                                     .instance = instance,
                                     .window = to_window_name(window) };

  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    select.kind = to_analysis_name(kinds[k]);
    TB_TRY(tc_reports_collect(reports, &select, take_report, s));
  }
  return TB_OK;
}

tb_rc tc_query_slowest(struct tc_query_session *session, const char *service, const char *instance,
                       const char *type, enum to_window window, struct tb_diag *diag,
                       struct tc_query_slowest *out) {
  struct search s = { .s = session, .type = type, .window_ns = (uint64_t)to_window_length(window) };

  tb_arena_init(&s.arena, &session->mem, CHUNK_BYTES);
  tb_rc rc = search_reports(&s, service, instance, window);
  tb_arena_fini(&s.arena);
  if (rc != TB_OK) return tc__query_end(session, rc, diag);
  if (s.found.slowest.until_wall_ns == 0)
    return tb_fail(diag, TB_NOTFOUND, "no complete task or region \"%.60s\" in %.60s then", type,
                   service);
  *out = s.found.slowest;
  return TB_OK;
}
