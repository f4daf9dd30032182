/* SPDX-License-Identifier: Apache-2.0 */
/* Archived generations are fetched segment by segment, ordered here, and turned into bundles like a lease's, so that
 * the rest of tail is the same. A stream's reader exists until the replay ends, because a generation is ordered with
 * the state of the previous one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/generation_time.h"
#include "base/grow.h"
#include "online/trace/reader.h"
#include "pack/bundle.h"
#include "proto/unpack.h"
#include "tools/tracectl/fetch/read.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/tail/tail.h"
#include "tools/tracectl/term/tracectl.h"

enum { BUNDLE_BYTES = 256 << 10, SLICE_EVENTS_MAX = 256 };

typedef Tracecollect__V1__SegmentInfo segment_info;

struct stream {
  struct stream *next;
  struct replay *replay;
  unsigned char id[16];
  char *service, *instance;
  struct to_reader *reader;
  struct tb_diag diag;
  struct to_durations *durations;
  struct tp_bundle bundle;
  uint64_t before;   /* skip generations up to here */
  uint64_t gen;      /* last ordered; 0: none */
  uint64_t position; /* of the next event in it */
  tb_rc rc;          /* result of showing them */
};

/* Consecutive generations of a segment. */
struct piece {
  uint64_t segment, first_gen, last_gen, offset, len;
  struct stream *stream;
};

struct replay {
  struct tk_tail *tail;
  struct to_filter filter;
  struct tb_arena unpacked;
  struct stream *streams;
  uint64_t since_wall_ns;
  struct piece *pieces;
  size_t n, room;
  struct tb_diag *diag;
};

/* --- bundles ----------------------------------------------------------------------------------- */

static tb_rc show(struct stream *s) {
  struct replay *r = s->replay;
  ProtobufCAllocator allocator = tp_arena_allocator(&r->unpacked);
  size_t len = tp_bundle_bytes(&s->bundle);
  void *packed;

  if (s->bundle.count == 0) return TB_OK;
  s->bundle.count = 0;
  TB_TRY(tb_arena_alloc(&r->unpacked, len, &packed));
  tp_bundle_write(&s->bundle, packed);
  Tracecollect__V1__EventBundle *b =
      tracecollect__v1__event_bundle__unpack(&allocator, len, packed);
  tb_rc rc = b != NULL ? tk_tail_bundle(r->tail, b) : TB_NOMEM;
  tb_arena_reset(&r->unpacked);
  return rc;
}

static tb_rc add_event(struct stream *s, const struct to_generation *gen,
                       const struct to_event *ev) {
  const struct tp_bundle_about about = { .stream = s->id,
                                         .service = s->service,
                                         .instance = s->instance };
  struct to_duration lasted;

  TB_TRY(to_durations_events(s->durations, gen, ev, 1, &lasted));
  uint64_t position = s->position++;
  if (s->gen <= s->before || !to_filter_fits(&s->replay->filter, ev, &lasted)) return TB_OK;
  if (s->bundle.count == 0) TB_TRY(tp_bundle_begin(&s->bundle, gen, &about));
  TB_TRY(tp_bundle_add(&s->bundle, gen, ev, position, &lasted));
  return tp_bundle_bytes(&s->bundle) >= BUNDLE_BYTES ? show(s) : TB_OK;
}

static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  struct stream *s = self;

  if (gen == NULL) return TB_OK;
  if (to_generation_number(gen) != s->gen) {
    s->rc = show(s);
    s->gen = to_generation_number(gen);
    s->position = 0;
  }
  for (size_t i = 0; s->rc == TB_OK && i < n; i++) s->rc = add_event(s, gen, &events[i]);
  return s->rc;
}

/* --- streams ----------------------------------------------------------------------------------- */

static struct stream *stream_of(struct replay *r, const segment_info *info) {
  struct to_event_sink sink = { NULL, on_events };
  struct stream *s;

  for (s = r->streams; s != NULL; s = s->next)
    if (memcmp(s->id, info->stream.data, sizeof s->id) == 0) return s;
  s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->next = r->streams;
  r->streams = s;
  s->replay = r;
  memcpy(s->id, info->stream.data, sizeof s->id);
  s->service = strdup(info->service);
  s->instance = strdup(info->instance);
  const struct tk_cursor *c = tk_cursor_of(&r->tail->cursors, s->id);
  if (c != NULL && c->gen == 0) s->before = c->base; /* or the cursor knows the event */
  tp_bundle_init(&s->bundle, &tk_mem);
  sink.self = s;
  bool made = s->service != NULL && s->instance != NULL &&
              to_durations_new(&tk_mem, &s->durations) == TB_OK &&
              to_reader_new(&tk_mem, &(struct to_limits){ 0 }, TO_READER_BYTES_STAY, sink, &s->diag,
                            &s->reader) == TB_OK;
  return made ? s : NULL;
}

static void streams_free(struct stream *s) {
  for (struct stream *next; s != NULL; s = next) {
    next = s->next;
    to_reader_free(s->reader);
    to_durations_free(s->durations);
    tp_bundle_fini(&s->bundle);
    free(s->service);
    free(s->instance);
    free(s);
  }
}

/* --- segments ---------------------------------------------------------------------------------- */

/* Returns true if nothing in it will be shown. The last generation shown does not count as past: ordering it again
 * gives the state for the events that follow. */
static bool is_past(struct tk_tail *tail, const segment_info *info) {
  const struct tk_cursor *c = tk_cursor_of(&tail->cursors, info->stream.data);

  return c != NULL && info->last_gen < (c->gen != 0 ? c->gen : c->base);
}

static tb_rc add_piece(struct replay *r, const struct piece *piece) {
  TB_TRY(TB_GROW(r->pieces, r->room, r->n));
  r->pieces[r->n++] = *piece;
  return TB_OK;
}

static bool is_asked(const struct replay *r, const struct tk_cursor *c, const segment_info *info,
                     const Tracecollect__V1__GenerationMeta *g) {
  struct tc_wall wall = tc_generation_wall(g, info->last_arrival_ns);

  if (c != NULL && g->gen < (c->gen != 0 ? c->gen : c->base)) return false;
  return wall.last_ns == 0 || wall.last_ns >= r->since_wall_ns;
}

/* Takes a run, from the first requested generation. A broken generation ends a piece: later ones are ordered without
 * it. */
static tb_rc take_generations(struct replay *r, const segment_info *info, struct stream *stream) {
  const struct tk_cursor *c = tk_cursor_of(&r->tail->cursors, stream->id);
  struct piece piece = { .segment = info->id, .stream = stream };
  size_t i = 0;

  while (i < info->n_generations && !is_asked(r, c, info, info->generations[i])) i++;
  for (; i < info->n_generations; i++) {
    const Tracecollect__V1__GenerationMeta *g = info->generations[i];
    if (piece.len == 0) {
      piece.first_gen = g->gen;
      piece.offset = g->offset;
    }
    piece.last_gen = g->gen;
    piece.len += g->bytes;
    if (g->verdict == NULL || g->verdict->code != TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN)
      continue;
    TB_TRY(add_piece(r, &piece));
    piece.len = 0;
  }
  return piece.len != 0 ? add_piece(r, &piece) : TB_OK;
}

static tb_rc take_page(void *self, const Tracecollect__V1__ListReply *page) {
  struct replay *r = self;

  for (size_t i = 0; i < page->n_segments; i++) {
    const segment_info *info = page->segments[i];

    if (info->stream.len != 16 ||
        !tk_tail_wants(r->tail->ask, info->service, info->instance, info->stream.data) ||
        is_past(r->tail, info))
      continue;
    if (info->expired) {
      tk_lines_note(r->tail->lines, true, "%s/%s: generation %" PRIu64 " has expired",
                    info->service, info->instance, info->first_gen);
      continue;
    }
    struct stream *stream = stream_of(r, info);
    if (stream == NULL) return TB_NOMEM;
    struct piece whole = { info->id,
                           info->first_gen,
                           info->last_gen,
                           TK_TRACE_HEADER_BYTES,
                           info->bytes - TK_TRACE_HEADER_BYTES,
                           stream };
    if (info->n_generations > 0)
      TB_TRY(take_generations(r, info, stream));
    else if (info->bytes > TK_TRACE_HEADER_BYTES)
      TB_TRY(add_piece(r, &whole));
  }
  return TB_OK;
}

/* Shows events before a fault, as tail does live. */
static tb_rc order_piece(struct replay *r, const struct piece *piece, unsigned char *bytes,
                         size_t len) {
  struct stream *s = piece->stream;

  tb_diag_clear(&s->diag);
  if (s->gen != 0 && piece->first_gen != s->gen + 1) {
    tk_lines_note(r->tail->lines, true,
                  "%s/%s: generations %" PRIu64 "..%" PRIu64 " are not in the archive", s->service,
                  s->instance, s->gen + 1, piece->first_gen - 1);
    to_reader_epoch(s->reader);
    to_durations_epoch(s->durations);
  }
  TB_TRY(to_reader_begin(s->reader));
  tb_rc rc = to_reader_read(s->reader, bytes, len);
  if (s->rc == TB_OK) s->rc = show(s);
  TB_TRY(s->rc);
  if (rc != TB_OK) {
    tk_lines_note(r->tail->lines, false, "%s/%s: %s; %s", s->service, s->instance,
                  s->diag.rc != TB_OK ? s->diag.text : tb_rc_text(rc),
                  "what comes before that was shown");
    to_durations_epoch(s->durations);
    if (tb_rc_class(rc) == TB_HOST) return rc;
  }
  s->gen = piece->last_gen;
  struct tk_cursor *c = tk_cursor_of(&r->tail->cursors, s->id);
  if (c != NULL) tk_cursor_done(c, piece->last_gen);
  return TB_OK;
}

static tb_rc replay_piece(struct replay *r, struct tk_client *client, const struct piece *piece) {
  struct tk_piece asked = { .segment = piece->segment, .offset = piece->offset, .len = piece->len };
  struct tk_fetch fetch = { .client = client, .diag = r->diag, .full = true };
  char *bytes = NULL;
  size_t len = 0;

  FILE *file = open_memstream(&bytes, &len);
  if (file == NULL) return TB_NOMEM;
  tb_rc rc = tk_fetch_piece(&fetch, &asked, true, file);
  if (fclose(file) != 0 && rc == TB_OK) rc = TB_NOMEM;
  if (rc == TB_OK) rc = order_piece(r, piece, (unsigned char *)bytes, len);
  free(bytes);
  return rc;
}

tb_rc tk_tail_replay(struct tk_tail *tail, struct tk_client *client, uint64_t since_wall_ns,
                     uint64_t since_arrival_ns, struct tb_diag *diag) {
  struct tk_selector selector = { .service =
                                      tail->ask->service_is_prefix || *tail->ask->service == '\0'
                                          ? NULL
                                          : tail->ask->service,
                                  .since_wall_ns = since_wall_ns,
                                  .since_arrival_ns = since_arrival_ns };
  struct tk_list_ask list = { .selector = &selector, .settle = true, .detail = true };
  struct replay r = { .tail = tail, .since_wall_ns = since_wall_ns, .diag = diag };
  tb_rc rc;

  tk_tail_filter(tail->ask, &r.filter);
  tb_arena_init(&r.unpacked, &tk_mem, 1 << 20);
  rc = tk_remote_list(client, &list, take_page, &r, diag);
  for (size_t i = 0; rc == TB_OK && i < r.n; i++) rc = replay_piece(&r, client, &r.pieces[i]);
  tk_lines_flush(tail->lines);
  streams_free(r.streams);
  free(r.pieces);
  tb_arena_fini(&r.unpacked);
  return rc;
}

/* --- where the archive ends -------------------------------------------------------------------- */

static tb_rc take_ends(void *self, const Tracecollect__V1__ListReply *page) {
  struct tk_tail *tail = self;

  for (size_t i = 0; i < page->n_segments; i++) {
    const segment_info *info = page->segments[i];
    if (info->stream.len != 16) continue;
    struct tk_cursor *c = tk_cursor_of(&tail->cursors, info->stream.data);
    if (c == NULL) return TB_NOMEM;
    if (info->last_gen > c->base) c->base = info->last_gen;
  }
  return TB_OK;
}

tb_rc tk_tail_baseline(struct tk_tail *tail, struct tk_client *client, struct tb_diag *diag) {
  struct tk_selector newest = { .last_ns = 1 };
  struct tk_list_ask list = { .selector = &newest, .settle = true };

  return tk_remote_list(client, &list, take_ends, tail, diag);
}
