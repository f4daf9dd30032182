/* SPDX-License-Identifier: Apache-2.0 */
/* Turns rows of the catalog and reports into messages. An answer points only into the session's arena. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "archive/meta.h"
#include "base/clock.h"
#include "base/text/hex.h"
#include "collector/query/private.h"
#include "proto/loss.h"
#include "proto/unpack.h"

/* --- arena helpers ----------------------------------------------------------------------------- */

struct list {
  void **items;
  size_t count, room;
};

static tb_rc list_add(struct tb_arena *arena, struct list *list, void *item) {
  TB_TRY(TB_ARENA_GROW(arena, list->items, list->room, list->count));
  list->items[list->count++] = item;
  return TB_OK;
}

tb_rc tc__query_text(struct tb_arena *arena, const char *text, char **out) {
  return tb_arena_copy(arena, text, strlen(text) + 1, out);
}

tb_rc tc__query_bytes(struct tb_arena *arena, const void *bytes, size_t n,
                      ProtobufCBinaryData *out) {
  out->len = n;
  return tb_arena_copy(arena, bytes, n, &out->data);
}

/* --- streams ----------------------------------------------------------------------------------- */

struct stream_list {
  struct tb_arena *arena;
  struct list list;
};

static tb_rc add_stream(void *self, const struct tc_stream_row *row) {
  struct stream_list *to = self;
  Tracecollect__V1__StreamStatus *s;

  TB_TRY(tb_arena_alloc(to->arena, sizeof *s, &s));
  tracecollect__v1__stream_status__init(s);
  TB_TRY(tc__query_bytes(to->arena, row->stream, sizeof row->stream, &s->stream));
  TB_TRY(tc__query_text(to->arena, row->service, &s->service));
  TB_TRY(tc__query_text(to->arena, row->instance, &s->instance));
  TB_TRY(tc__query_text(to->arena, row->identity, &s->identity));
  TB_TRY(tc__query_text(to->arena, row->state, &s->state));
  TB_TRY(tc__query_text(to->arena, row->peer, &s->peer));
  s->go_version = row->go_version;
  s->acked_seq = row->acked_seq;
  s->batches = row->batches;
  s->bytes = row->bytes;
  s->generations = row->generations;
  s->broken = row->broken;
  s->events = row->events;
  s->lost_batches = row->lost_batches;
  s->lost_bytes = row->lost_bytes;
  s->lost_generations = row->lost_generations;
  s->first_wall_ns = row->first_arrival_ns;
  s->last_wall_ns = row->last_arrival_ns;
  s->newest_wall_ns = row->newest_wall_ns;
  s->produced_batches = row->produced_batches;
  s->produced_bytes = row->produced_bytes;
  s->spool_bytes = row->spool_bytes;
  if (row->last_loss != 0) s->last_loss = (char *)(uintptr_t)tp_loss_text(row->last_loss);
  return list_add(to->arena, &to->list, s);
}

/* --- status ------------------------------------------------------------------------------------ */

/* The URLs belong to the environment, which outlives every answer. */
static void add_feed_urls(struct tc_query_env *env, Tracecollect__V1__StatusReply *status) {
  status->feed_urls = (char **)(uintptr_t)env->feed_urls; /* packing only reads them */
  while (env->feed_urls[status->n_feed_urls] != NULL) status->n_feed_urls++;
}

static tb_rc add_open(void *self, const struct tc_segment_row *row) {
  Tracecollect__V1__StatusReply *status = self;

  status->open_bytes += row->bytes;
  status->open_segments++;
  return TB_OK;
}

static tb_rc answer_status(struct tc_query_session *s, struct tb_diag *diag,
                           Tracecollect__V1__StatusReply **out) {
  struct stream_list streams = { .arena = &s->arena };
  struct tc_query_env *env = &s->query->env;
  const struct tc_select all = { 0 }, open_runs = { .only_open = true, .limit = UINT32_MAX };
  struct tc_store_stats stats;
  Tracecollect__V1__StatusReply *status;

  TB_TRY(tb_arena_alloc(&s->arena, sizeof *status, &status));
  tracecollect__v1__status_reply__init(status);
  tc_store_show_runs(env->store);
  TB_TRY(tc__query_catalog(s, diag));
  TB_TRY(tc_catalog_streams(s->catalog, &all, add_stream, &streams, diag));
  TB_TRY(tc_catalog_segments(s->catalog, &open_runs, add_open, status, diag));
  tc_store_stats(env->store, &stats);

  TB_TRY(tc__query_text(&s->arena, env->version, &status->version));
  TB_TRY(tc__query_text(&s->arena, env->durable ? "durable" : "process", &status->level));
  TB_TRY(tc__query_text(&s->arena, stats.finding, &status->health));
  status->started_wall_ns = env->started_wall_ns;
  status->wall_ns = tc_wall_ns();
  status->archive_bytes = stats.archive_bytes;
  status->archive_segments = stats.archive_segments;
  status->disk_free_bytes = stats.disk_free_bytes;
  status->n_streams = streams.list.count;
  status->streams = (void *)streams.list.items;
  add_feed_urls(env, status);
  *out = status;
  return TB_OK;
}

tb_rc tc_query_status(struct tc_query_session *s, struct tb_diag *diag,
                      Tracecollect__V1__StatusReply **out) {
  tb_arena_reset(&s->arena);
  return tc__query_end(s, answer_status(s, diag, out), diag);
}

/* --- list -------------------------------------------------------------------------------------- */

struct segment_list {
  struct tc_keeps *keeps;
  struct tb_arena *arena;
  struct list list;
  size_t limit;
  bool more;
};

/* Names of verdicts, as `list` prints them. */
static const char *verdict_word(unsigned verdict) {
  static const char *const words[] = {
    [TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING] = "pending",
    [TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK] = "ok",
    [TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN] = "broken",
    [TRACECOLLECT__V1__VERDICT_CODE__VERDICT_UNSUPPORTED] = "unsupported",
    [TRACECOLLECT__V1__VERDICT_CODE__VERDICT_TOO_LARGE] = "too-large",
    [TRACECOLLECT__V1__VERDICT_CODE__VERDICT_FUEL] = "fuel",
    [TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BEHIND] = "behind",
    [TRACECOLLECT__V1__VERDICT_CODE__VERDICT_UNREADABLE] = "unreadable",
  };

  return verdict < sizeof words / sizeof words[0] ? words[verdict] : "unknown";
}

static tb_rc add_segment(void *self, const struct tc_segment_row *row) {
  struct segment_list *to = self;
  Tracecollect__V1__SegmentInfo *s;

  if (to->list.count == to->limit) {
    to->more = true;
    return TB_OK;
  }
  TB_TRY(tb_arena_alloc(to->arena, sizeof *s, &s));
  tracecollect__v1__segment_info__init(s);
  char rule[TC_KEEP_RULE_MAX + 1] = "";
  if (tc_keeps_meets(to->keeps, row->stream, row->service, row->first_wall_ns, row->last_wall_ns,
                     rule))
    TB_TRY(tc__query_text(to->arena, rule, &s->kept_by));
  s->id = row->id;
  TB_TRY(tc__query_bytes(to->arena, row->stream, sizeof row->stream, &s->stream));
  TB_TRY(tc__query_text(to->arena, row->service, &s->service));
  TB_TRY(tc__query_text(to->arena, row->instance, &s->instance));
  TB_TRY(tc__query_text(to->arena, row->path, &s->path));
  TB_TRY(tc__query_text(to->arena, verdict_word(row->verdict), &s->analysis));
  TB_TRY(tc__query_text(to->arena, row->reason, &s->reason));
  TB_TRY(tc__query_text(to->arena, tc_hash_name(row->hash.kind), &s->hash_kind));
  TB_TRY(tc__query_bytes(to->arena, row->hash.bytes, tc_hash_len(row->hash.kind), &s->hash));
  s->first_gen = row->first_gen;
  s->last_gen = row->last_gen;
  s->bytes = row->bytes;
  s->batches = row->batches;
  s->events = row->events;
  s->first_wall_ns = row->first_wall_ns;
  s->last_wall_ns = row->last_wall_ns;
  s->wall_estimated = row->wall_estimated;
  s->first_arrival_ns = row->first_arrival_ns;
  s->last_arrival_ns = row->last_arrival_ns;
  s->go_version = row->go_version;
  s->expired = row->expired;
  s->open = row->open;
  s->unsafe_experiment = row->unsafe_experiment;
  return list_add(to->arena, &to->list, s);
}

static void meta_freep(tc_meta **meta) {
  tc_meta_free(*meta);
}

tb_rc tc__query_move_in(struct tb_arena *arena, const ProtobufCMessage *message, void **out) {
  size_t n = protobuf_c_message_get_packed_size(message);
  ProtobufCAllocator allocator = tp_arena_allocator(arena);
  void *packed;

  TB_TRY(tb_arena_alloc(arena, n, &packed));
  protobuf_c_message_pack(message, packed);
  *out = protobuf_c_message_unpack(message->descriptor, &allocator, n, packed);
  return *out != NULL ? TB_OK : arena->is_short ? TB_NOMEM : TB_BUDGET;
}

/* Reads a segment's meta; *out NULL: unreadable now, because retention or the sealer is changing it. */
static tb_rc read_meta(struct tc_query_session *session, const Tracecollect__V1__SegmentInfo *s,
                       struct tb_diag *diag, tc_meta **out) {
  char path[256];
  const char *dot = strrchr(s->path, '.');

  *out = NULL;
  if (s->open) {
    tb_rc rc = tc_catalog_open_meta(session->catalog, s->id, diag, out);
    return rc == TB_NOTFOUND ? TB_OK : rc; /* sealed meanwhile */
  }
  if (dot == NULL) return TB_OK;
  snprintf(path, sizeof path, "%.*s.meta", (int)(dot - s->path), s->path);
  if (tc_meta_read(tc_store_dirfd(session->query->env.store), path, NULL, out) != TB_OK)
    *out = NULL;
  return TB_OK;
}

/* Adds figures that only the meta has. */
static tb_rc add_detail(struct tc_query_session *session, Tracecollect__V1__SegmentInfo *s,
                        struct tb_diag *diag) {
  TB_CLEANUP(meta_freep) tc_meta *meta = NULL;
  struct list generations = { 0 }, losses = { 0 };
  void *copy;

  TB_TRY(read_meta(session, s, diag, &meta));
  if (meta == NULL) return TB_OK;
  for (size_t i = 0; meta->n_generations > 1 && i < meta->n_generations; i++) {
    TB_TRY(tc__query_move_in(&session->arena, &meta->generations[i]->base, &copy));
    TB_TRY(list_add(&session->arena, &generations, copy));
  }
  for (size_t i = 0; i < meta->n_losses; i++) {
    TB_TRY(tc__query_move_in(&session->arena, &meta->losses[i]->base, &copy));
    TB_TRY(list_add(&session->arena, &losses, copy));
  }
  s->n_generations = generations.count;
  s->generations = (void *)generations.items;
  s->n_losses = losses.count;
  s->losses = (void *)losses.items;
  return TB_OK;
}

static tb_rc read_selector(const Tracecollect__V1__Selector *from, struct tb_diag *diag,
                           struct tc_select *out) {
  if (from == NULL) return TB_OK;
  if (from->stream.len != 0 && from->stream.len != sizeof((struct tc_segment_row){ 0 }).stream)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has 16 bytes");
  *out = (struct tc_select){
    .segment = from->segment,
    .service = from->service,
    .instance = from->instance,
    .stream = from->stream.len != 0 ? from->stream.data : NULL,
    .since_wall_ns = from->since_wall_ns,
    .until_wall_ns = from->until_wall_ns,
    .last_ns = from->last_ns,
    .since_arrival_ns = from->since_arrival_ns,
    .until_arrival_ns = from->until_arrival_ns,
    .first_gen = from->first_gen,
    .last_gen = from->last_gen,
  };
  return TB_OK;
}

/* Reads STREAM.GEN.NS, or a segment's id. */
static tb_rc read_place(const char *text, struct tb_arena *arena, struct tb_diag *diag,
                        struct tc_select *out) {
  unsigned char *stream;
  int end = 0;

  TB_TRY(tb_arena_alloc(arena, TC_STREAM_BYTES, &stream));
  if (strspn(text, "0123456789") == strlen(text)) {
    if (sscanf(text, "%" SCNu64 "%n", &out->after, &end) == 1 && out->after <= INT64_MAX)
      return TB_OK;
  } else if (tb_unhex(text, stream, TC_STREAM_BYTES) &&
             sscanf(text + 2 * (size_t)TC_STREAM_BYTES, ".%" SCNu64 ".%" SCNu64 "%n",
                    &out->place.first_gen, &out->place.first_wall_ns, &end) == 2 &&
             text[2 * TC_STREAM_BYTES + end] == '\0') {
    out->place.stream = stream;
    return TB_OK;
  }
  return tb_fail(diag, TB_PROTOCOL, "after=%.60s is neither a segment's id nor a place", text);
}

static tb_rc write_place(const Tracecollect__V1__SegmentInfo *last, struct tb_arena *arena,
                         char **out) {
  char hex[2 * TC_STREAM_BYTES + 1], text[sizeof hex + 2 * 21];

  tb_hex(last->stream.data, TC_STREAM_BYTES, hex);
  snprintf(text, sizeof text, "%s.%" PRIu64 ".%" PRIu64, hex, last->first_gen, last->first_wall_ns);
  return tc__query_text(arena, text, out);
}

/* Reads selector and place. *out_first: the request is for the first page. */
static tb_rc read_list(struct tc_query_session *s, const Tracecollect__V1__ListRequest *ask,
                       struct tb_diag *diag, struct tc_select *out, bool *out_first) {
  TB_TRY(read_selector(ask->selector, diag, out));
  *out_first = *ask->place == '\0';
  return *out_first ? TB_OK : read_place(ask->place, &s->arena, diag, out);
}

static tb_rc answer_list(struct tc_query_session *s, const Tracecollect__V1__ListRequest *ask,
                         struct tb_diag *diag, Tracecollect__V1__ListReply **out) {
  struct segment_list segments = { .keeps = tc_store_keeps(s->query->env.store),
                                   .arena = &s->arena,
                                   .limit = ask->limit != 0 ? ask->limit : TC__SEGMENTS };
  struct stream_list streams = { .arena = &s->arena };
  struct tc_select select = { 0 };
  Tracecollect__V1__ListReply *list;
  bool first = false;

  TB_TRY(read_list(s, ask, diag, &select, &first));
  if (ask->settle) {
    TB_TRY(tc__query_settle(s, diag));
    TB_TRY(tc__query_await_rebuild(s, diag));
  } else if (first) {
    tc_store_show_runs(s->query->env.store);
  }
  TB_TRY(tc__query_catalog(s, diag));

  select.limit = TC__STREAMS_MAX;
  if (first) TB_TRY(tc_catalog_streams(s->catalog, &select, add_stream, &streams, diag));
  if (segments.limit > TC__SEGMENTS_MAX) segments.limit = TC__SEGMENTS_MAX;
  select.limit = (unsigned)segments.limit + 1; /* one more, to know whether there are more */
  TB_TRY((ask->newest_first ? tc_catalog_newest : tc_catalog_segments)(
      s->catalog, &select, add_segment, &segments, diag));
  for (size_t i = 0; ask->detail && i < segments.list.count; i++)
    TB_TRY(add_detail(s, segments.list.items[i], diag));

  TB_TRY(tb_arena_alloc(&s->arena, sizeof *list, &list));
  tracecollect__v1__list_reply__init(list);
  list->n_segments = segments.list.count;
  list->segments = (void *)segments.list.items;
  list->more = segments.more;
  list->newest_first = ask->newest_first;
  list->n_streams = streams.list.count;
  list->streams = (void *)streams.list.items;
  if (list->more) TB_TRY(write_place(list->segments[list->n_segments - 1], &s->arena, &list->next));
  *out = list;
  return TB_OK;
}

TC__QUESTION(list, List)
