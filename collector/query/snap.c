/* SPDX-License-Identifier: Apache-2.0 */
/* A session waits here for agents; recorders limit how many wait at a time, so that other sessions stay free. */

#include "collector/query/private.h"

enum { WAIT_MS = 10000 };

static tb_rc add_agent(struct tb_arena *arena, const struct tc_snap_row *row,
                       Tracecollect__V1__AgentSnap **out) {
  const char *state = tc_snap_state_word(row->done.state);
  const struct tc_recorder *who = &row->who;
  void *place;

  TB_TRY(tb_arena_alloc(arena, sizeof **out, &place));
  Tracecollect__V1__AgentSnap *a = *out = place;
  tracecollect__v1__agent_snap__init(a);
  TB_TRY(tc__query_bytes(arena, who->stream, sizeof who->stream, &a->stream));
  TB_TRY(tc__query_text(arena, who->service, &a->service));
  TB_TRY(tc__query_text(arena, who->instance, &a->instance));
  TB_TRY(tc__query_text(arena, state, &a->state));
  a->record_ns = who->record_ns;
  a->first_gen = row->done.first_gen;
  a->last_gen = row->done.last_gen;
  a->generations = row->done.generations;
  a->batches = row->done.batches;
  a->bytes = row->done.bytes;
  a->lost_generations = row->done.lost_generations;
  a->from_wall_ns = row->done.from_wall_ns;
  a->to_wall_ns = row->done.to_wall_ns;
  return TB_OK;
}

static tb_rc count_stream(void *self, const struct tc_stream_row *row) {
  (void)row;
  (*(size_t *)self)++;
  return TB_OK;
}

/* No agent is connected: the message distinguishes an unknown name from a program that is not connected. */
static tb_rc fail_not_connected(struct tc_query_session *s, const struct tc_snap_ask *ask,
                                struct tb_diag *diag) {
  struct tc_select select = { .service = ask->service,
                              .instance = ask->instance,
                              .stream = ask->stream };
  size_t known = 0;

  tb_diag_clear(diag);
  TB_TRY(tc__query_catalog(s, diag));
  TB_TRY(tc_catalog_streams(s->catalog, &select, count_stream, &known, diag));
  if (known == 0)
    return tb_fail(diag, TB_NOTFOUND, "no agent of service \"%.64s\"%s%.64s ever connected",
                   ask->service, *ask->instance != '\0' ? ", instance " : "", ask->instance);
  return tb_fail(diag, TB_NOTFOUND,
                 "no agent of service \"%.64s\"%s%.64s is connected (streams known: %zu)",
                 ask->service, *ask->instance != '\0' ? ", instance " : "", ask->instance, known);
}

static tb_rc answer_snap(struct tc_query_session *s, const Tracecollect__V1__SnapRequest *from,
                         struct tb_diag *diag, Tracecollect__V1__SnapReply **out) {
  struct tc_snap_ask ask = { .service = from->service,
                             .instance = from->instance,
                             .stream = from->stream.len != 0 ? from->stream.data : NULL,
                             .last_ns = from->last_ns,
                             .wait_ms = from->wait_ms != 0 ? from->wait_ms : WAIT_MS };
  struct tc_recorders *recorders = s->query->env.recorders;
  struct tc_snap_row *rows;
  size_t n;

  if (from->stream.len != 0 && from->stream.len != TC_STREAM_BYTES)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has 16 bytes");
  if (recorders == NULL)
    return tb_fail(diag, TB_UNSUPPORTED, "this collector asks no agent for snaps");
  tb_rc rc = tc_recorders_ask(recorders, &ask, &s->arena, diag, &rows, &n);
  if (rc == TB_NOTFOUND) return fail_not_connected(s, &ask, diag);
  TB_TRY(rc);

  TB_TRY(tb_arena_alloc(&s->arena, sizeof **out, out));
  tracecollect__v1__snap_reply__init(*out);
  TB_TRY(tb_arena_alloc(&s->arena, n * sizeof *(*out)->agents, &(*out)->agents));
  for (; (*out)->n_agents < n; (*out)->n_agents++)
    TB_TRY(add_agent(&s->arena, &rows[(*out)->n_agents], &(*out)->agents[(*out)->n_agents]));
  return TB_OK;
}

TC__QUESTION(snap, Snap)
