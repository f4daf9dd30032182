/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/hex.h"
#include "collector/query/private.h"
#include "config/times.h"

static const uint64_t HOUR_NS = UINT64_C(3600000000000);

enum { ID_DIGITS = 16 };

struct list {
  struct tb_arena *arena;
  Tracecollect__V1__FindingsReply *reply;
};

static tb_rc copy_time(struct tb_arena *arena, uint64_t wall_ns, char **out) {
  char text[TC_TIME_BYTES];

  tc_time_format(wall_ns, text);
  return tc__query_text(arena, text, out);
}

static tb_rc copy_instances(struct tb_arena *arena, const struct tc_finding *f,
                            Tracecollect__V1__Finding *out) {
  TB_TRY(tb_arena_alloc(arena, f->instances * sizeof *out->instances, &out->instances));
  for (unsigned i = 0; i < f->instances; i++)
    TB_TRY(tc__query_text(arena, f->instance[i], &out->instances[out->n_instances++]));
  return TB_OK;
}

static tb_rc copy_history(struct tb_arena *arena, const struct tc_finding *f,
                          Tracecollect__V1__Finding *out) {
  TB_TRY(tb_arena_alloc(arena, f->times * sizeof *out->history, &out->history));
  for (unsigned i = 0; i < f->times; i++) {
    Tracecollect__V1__FindingTime *time;
    TB_TRY(tb_arena_alloc(arena, sizeof *time, &time));
    tracecollect__v1__finding_time__init(time);
    TB_TRY(copy_time(arena, f->time[i].began_ns, &time->began_at));
    TB_TRY(copy_time(arena, f->time[i].last_ns, &time->last_at));
    time->peak = f->time[i].peak;
    out->history[out->n_history++] = time;
  }
  return TB_OK;
}

static tb_rc write_links(struct tb_arena *arena, const struct tc_finding *f,
                         Tracecollect__V1__Finding *out) {
  struct tc_part part = { .service = f->service,
                          .gen = f->gen,
                          .from_ns = f->from_ns,
                          .until_ns = f->until_ns,
                          .why = f->why };
  char fetch[TC_PART_FETCH_BYTES], path[TC_PART_PATH_BYTES];

  memcpy(part.stream, f->stream, sizeof part.stream);
  tc_part_fetch(&part, fetch);
  TB_TRY(tc__query_text(arena, fetch, &out->fetch));
  tc_part_timeline(&part, path);
  TB_TRY(tc__query_text(arena, path, &out->link));
  tc_part_why(&part, path);
  return tc__query_text(arena, path, &out->why);
}

static tb_rc copy_mute(struct tb_arena *arena, const struct tc_finding *f,
                       Tracecollect__V1__Finding *out) {
  if (!tc_finding_is_muted(f, tc_wall_ns())) return TB_OK;
  TB_TRY(copy_time(arena, f->muted_until_ns, &out->muted_until));
  return tc__query_text(arena, f->mute_reason, &out->mute_reason);
}

static tb_rc copy_finding(struct tb_arena *arena, const struct tc_finding *f,
                          Tracecollect__V1__Finding *out) {
  const char *unit = f->peak == 0 ? "" : f->is_time ? "ns" : "goroutines";
  char id[ID_DIGITS + 1];

  tracecollect__v1__finding__init(out);
  snprintf(id, sizeof id, "%016" PRIx64, f->id);
  out->open = f->ended_ns == 0;
  out->count = f->count;
  out->peak = f->peak;
  out->gen = f->gen;
  out->from_wall_ns = f->from_ns;
  out->until_wall_ns = f->until_ns;
  TB_TRY(tc__query_text(arena, id, &out->id));
  TB_TRY(tc__query_text(arena, f->kind, &out->kind));
  TB_TRY(tc__query_text(arena, f->service, &out->service));
  TB_TRY(tc__query_text(arena, f->place, &out->place));
  TB_TRY(tc__query_text(arena, f->cause, &out->cause));
  TB_TRY(tc__query_text(arena, f->words, &out->words));
  TB_TRY(tc__query_text(arena, unit, &out->peak_unit));
  TB_TRY(copy_time(arena, f->began_ns, &out->began_at));
  TB_TRY(copy_time(arena, f->last_ns, &out->last_at));
  TB_TRY(tc__query_bytes(arena, f->stream, sizeof f->stream, &out->stream));
  TB_TRY(copy_instances(arena, f, out));
  TB_TRY(copy_history(arena, f, out));
  TB_TRY(copy_mute(arena, f, out));
  return write_links(arena, f, out);
}

static tb_rc add_finding(void *self, const struct tc_finding *finding) {
  struct list *list = self;
  Tracecollect__V1__FindingsReply *reply = list->reply;

  if (reply->n_findings == TC_FINDINGS_ANSWER_MAX) {
    reply->more = true;
    return TB_END;
  }
  Tracecollect__V1__Finding **out = &reply->findings[reply->n_findings];
  TB_TRY(tb_arena_alloc(list->arena, sizeof **out, out));
  TB_TRY(copy_finding(list->arena, finding, *out));
  reply->n_findings++;
  return TB_OK;
}

static tb_rc begin_list(struct tc_query_session *s, struct tb_diag *diag, struct list *out) {
  if (s->query->env.findings == NULL)
    return tb_fail(diag, TB_UNSUPPORTED, "this collector has no findings");
  *out = (struct list){ .arena = &s->arena };
  TB_TRY(tb_arena_alloc(&s->arena, sizeof *out->reply, &out->reply));
  tracecollect__v1__findings_reply__init(out->reply);
  return tb_arena_alloc(&s->arena, TC_FINDINGS_ANSWER_MAX * sizeof *out->reply->findings,
                        &out->reply->findings);
}

static tb_rc read_id(const char *text, struct tb_diag *diag, uint64_t *out) {
  size_t n = strspn(text, "0123456789abcdefABCDEF");

  if (n != ID_DIGITS || text[n] != '\0')
    return tb_fail(diag, TB_BROKEN, "id: \"%.40s\" is not the id of a finding, which has 16 digits",
                   text);
  *out = strtoull(text, NULL, 16);
  return TB_OK;
}

static tb_rc take_segment(void *self, const struct tc_segment_row *row) {
  bool *is_expired = self;

  *is_expired = row->expired;
  return TB_END;
}

/* A generation without a row is in a run that has just begun, or its row was folded into the ledger of a day. */
static void mark_expired(struct tc_query_session *s, Tracecollect__V1__Finding *f) {
  const struct tc_select select = {
    .stream = f->stream.data, .first_gen = f->gen, .last_gen = f->gen, .limit = 1
  };
  struct tb_diag ignored = { 0 };
  bool is_expired = f->until_wall_ns + HOUR_NS < tc_wall_ns();

  tb_rc rc = tc_catalog_segments(s->catalog, &select, take_segment, &is_expired, &ignored);
  f->expired = (rc == TB_OK || rc == TB_END) && is_expired;
}

/* Without a catalog, which may be rebuilt just now, nothing is said to have expired. */
static void mark_all_expired(struct tc_query_session *s, Tracecollect__V1__FindingsReply *reply) {
  struct tb_diag ignored = { 0 };

  if (tc__query_catalog(s, &ignored) != TB_OK) return;
  for (size_t i = 0; i < reply->n_findings; i++) mark_expired(s, reply->findings[i]);
}

static tb_rc answer_findings(struct tc_query_session *s,
                             const Tracecollect__V1__FindingsRequest *ask, struct tb_diag *diag,
                             Tracecollect__V1__FindingsReply **out) {
  struct tc_findings_ask which = { .service = ask->service,
                                   .since_ns = ask->since_ns,
                                   .is_open = ask->open };
  struct list list;

  if (ask->id[0] != '\0') TB_TRY(read_id(ask->id, diag, &which.id));
  TB_TRY(begin_list(s, diag, &list));
  tb_rc rc = tc_findings_each(s->query->env.findings, &which, &list, add_finding);
  *out = list.reply;
  if (rc != TB_OK && rc != TB_END) return rc;
  mark_all_expired(s, list.reply);
  return TB_OK;
}

static tb_rc answer_mute(struct tc_query_session *s, const Tracecollect__V1__MuteRequest *ask,
                         struct tb_diag *diag, Tracecollect__V1__FindingsReply **out) {
  uint64_t id, now = tc_wall_ns();
  struct tc_finding muted;
  struct list list;

  TB_TRY(read_id(ask->id, diag, &id));
  if (ask->for_ns != 0 && ask->reason[0] == '\0')
    return tb_fail(diag, TB_BROKEN, "reason: say why it is muted");
  TB_TRY(begin_list(s, diag, &list));
  uint64_t until = ask->for_ns == 0                 ? 0
                   : ask->for_ns < UINT64_MAX - now ? now + ask->for_ns
                                                    : UINT64_MAX;
  if (tc_findings_mute(s->query->env.findings, id, until, ask->reason, &muted) != TB_OK)
    return tb_fail(diag, TB_NOTFOUND, "no finding %s; 'tracectl findings' lists them", ask->id);
  *out = list.reply;
  return add_finding(&list, &muted);
}

TC__QUESTION(findings, Findings)

tb_rc tc_query_mute(struct tc_query_session *s, const Tracecollect__V1__MuteRequest *ask,
                    struct tb_diag *diag, Tracecollect__V1__FindingsReply **out) {
  tb_arena_reset(&s->arena);
  return tc__query_end(s, answer_mute(s, ask, diag, out), diag);
}
