/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "archive/generation_time.h"
#include "base/grow.h"
#include "collector/timeline/private.h"

/* Limit of what one answer may read: some seconds of work. */
#define BYTES_MAX (UINT64_C(256) << 20)

typedef Tracecollect__V1__SegmentInfo segment_info;

void tc__places_fini(struct tc__places *places) {
  tb_mem_free(places->mem, places->place, places->room * sizeof *places->place);
}

static tb_rc add_place(struct tc__places *to, const struct tc__place *place) {
  TB_TRY(TB_MEM_GROW(to->mem, to->place, to->room, to->n));
  to->place[to->n++] = *place;
  return TB_OK;
}

struct stretch {
  uint64_t from_wall_ns, until_wall_ns; /* until 0: no limits */
  uint64_t gen;                         /* 0: any */
};

static bool is_asked(const struct stretch *asked, const struct tc__place *place) {
  if (asked->gen != 0) return place->gen == asked->gen;
  return asked->until_wall_ns == 0 || (place->until_wall_ns >= asked->from_wall_ns &&
                                       place->from_wall_ns <= asked->until_wall_ns);
}

/* The row of a segment with one generation has the generation's times. */
static tb_rc add_one(struct tc__places *to, const segment_info *s, const struct stretch *asked) {
  const struct tc__place place = { .segment = s->id,
                                   .gen = s->first_gen,
                                   .offset = TC__TIMELINE_HEADER_BYTES,
                                   .bytes = s->bytes > TC__TIMELINE_HEADER_BYTES
                                                ? s->bytes - TC__TIMELINE_HEADER_BYTES
                                                : 0,
                                   .from_wall_ns = s->first_wall_ns,
                                   .until_wall_ns = s->last_wall_ns,
                                   .expired = s->expired || s->first_gen != s->last_gen };

  return is_asked(asked, &place) ? add_place(to, &place) : TB_OK;
}

static tb_rc add_segment(struct tc__places *to, const segment_info *s,
                         const struct stretch *asked) {
  if (s->wall_estimated) to->wall_estimated = true;
  if (s->n_generations == 0) return add_one(to, s, asked);
  for (size_t i = 0; i < s->n_generations; i++) {
    const Tracecollect__V1__GenerationMeta *g = s->generations[i];
    struct tc_wall wall = tc_generation_wall(g, s->last_arrival_ns);
    const struct tc__place place = { .segment = s->id,
                                     .gen = g->gen,
                                     .offset = g->offset,
                                     .bytes = g->bytes,
                                     .from_wall_ns = wall.first_ns,
                                     .until_wall_ns = wall.last_ns,
                                     .last = g->last_ns,
                                     .expired = s->expired };

    if (is_asked(asked, &place)) TB_TRY(add_place(to, &place));
  }
  return TB_OK;
}

static tb_rc add_list(struct tc__places *to, const Tracecollect__V1__ListReply *list,
                      const struct stretch *asked) {
  if (list->n_streams > 0) {
    snprintf(to->service, sizeof to->service, "%s", list->streams[0]->service);
    snprintf(to->instance, sizeof to->instance, "%s", list->streams[0]->instance);
  }
  for (size_t i = 0; i < list->n_segments; i++) TB_TRY(add_segment(to, list->segments[i], asked));
  return TB_OK;
}

/* Reads all pages of a list; with newest_first only the first page. */
static tb_rc ask(struct tc_query_session *session, Tracecollect__V1__ListRequest *list,
                 const struct stretch *asked, struct tb_diag *diag, struct tc__places *out) {
  Tracecollect__V1__ListReply *reply;

  do {
    TB_TRY(tc_query_list(session, list, diag, &reply));
    TB_TRY(add_list(out, reply, asked));
    snprintf(out->next, sizeof out->next, "%s",
             reply->next); /* reply is lent until the next list */
    list->place = out->next;
  } while (reply->more && !list->newest_first);
  return TB_OK;
}

static void select_stream(Tracecollect__V1__ListRequest *list, Tracecollect__V1__Selector *selector,
                          const unsigned char *stream) {
  selector->stream =
      (ProtobufCBinaryData){ TC_TIMELINE_STREAM_BYTES, (unsigned char *)(uintptr_t)stream };
  list->selector = selector;
  list->detail = true;
}

static tb_rc find_gen(struct tc_query_session *session, const unsigned char *stream, uint64_t gen,
                      struct tb_diag *diag, struct tc__places *out) {
  const struct stretch asked = { .gen = gen };
  Tracecollect__V1__ListRequest list = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  Tracecollect__V1__Selector selector = TRACECOLLECT__V1__SELECTOR__INIT;

  select_stream(&list, &selector, stream);
  selector.first_gen = selector.last_gen = gen;
  return ask(session, &list, &asked, diag, out);
}

/* Finds the stream's newest segment. */
static tb_rc find_newest(struct tc_query_session *session, const unsigned char *stream,
                         struct tb_diag *diag, struct tc__places *out) {
  const struct stretch all = { .gen = 0 };
  Tracecollect__V1__ListRequest list = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  Tracecollect__V1__Selector selector = TRACECOLLECT__V1__SELECTOR__INIT;

  select_stream(&list, &selector, stream);
  list.newest_first = true;
  list.limit = 1;
  return ask(session, &list, &all, diag, out);
}

static tb_rc find_times(struct tc_query_session *session, const unsigned char *stream,
                        const struct stretch *asked, struct tb_diag *diag, struct tc__places *out) {
  Tracecollect__V1__ListRequest list = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  Tracecollect__V1__Selector selector = TRACECOLLECT__V1__SELECTOR__INIT;

  select_stream(&list, &selector, stream);
  selector.since_wall_ns = asked->from_wall_ns;
  selector.until_wall_ns = asked->until_wall_ns;
  return ask(session, &list, asked, diag, out);
}

/* Sets `after` of the first place to the last event of the generation before. */
static tb_rc find_before(struct tc_query_session *session, const unsigned char *stream,
                         struct tb_diag *diag, struct tc__places *out) {
  struct tc__places before = { .mem = out->mem };
  struct tc__place *first = &out->place[0];

  if (first->gen <= 1) return TB_OK;
  tb_rc rc = find_gen(session, stream, first->gen - 1, diag, &before);
  if (rc == TB_OK && before.n > 0) first->after = before.place[before.n - 1].last;
  tc__places_fini(&before);
  return rc;
}

static tb_rc link(struct tc_query_session *session, const unsigned char *stream,
                  struct tb_diag *diag, struct tc__places *out) {
  for (size_t i = 1; i < out->n; i++)
    if (out->place[i].gen == out->place[i - 1].gen + 1)
      out->place[i].after = out->place[i - 1].last;
  return find_before(session, stream, diag, out);
}

static tb_rc fail_not_found(struct tc_query_session *session, const unsigned char *stream,
                            const char *what, struct tb_mem *mem, struct tb_diag *diag) {
  struct tc__places any = { .mem = mem };

  tb_rc rc = find_newest(session, stream, diag, &any);
  tc__places_fini(&any);
  TB_TRY(rc);
  return tb_fail(diag, TB_NOTFOUND, "%s", any.service[0] == '\0' ? "no stream has this id" : what);
}

tb_rc tc__places_find(struct tc_query_session *session, const unsigned char *stream,
                      uint64_t from_wall_ns, uint64_t until_wall_ns, struct tb_diag *diag,
                      struct tc__places *out) {
  const struct stretch asked = { .from_wall_ns = from_wall_ns, .until_wall_ns = until_wall_ns };

  if (until_wall_ns == 0) {
    TB_TRY(find_newest(session, stream, diag, out));
    if (out->n > 0) out->place[0] = out->place[out->n - 1];
    out->n = out->n > 0;
  } else {
    TB_TRY(find_times(session, stream, &asked, diag, out));
  }
  if (out->n == 0)
    return fail_not_found(session, stream, "the stream has no generation of that time", out->mem,
                          diag);
  return link(session, stream, diag, out);
}

tb_rc tc__places_find_gen(struct tc_query_session *session, const unsigned char *stream,
                          uint64_t gen, struct tb_diag *diag, struct tc__places *out) {
  TB_TRY(find_gen(session, stream, gen, diag, out));
  if (out->n == 0)
    return fail_not_found(session, stream, "the stream has no such generation", out->mem, diag);
  return link(session, stream, diag, out);
}

tb_rc tc__places_check_size(const struct tc__places *places, struct tb_diag *diag) {
  uint64_t bytes = 0;

  for (size_t i = 0; i < places->n; i++)
    bytes += places->place[i].expired ? 0 : places->place[i].bytes;
  if (bytes <= BYTES_MAX) return TB_OK;
  return tb_fail(diag, TB_BUDGET,
                 "%zu generations of %" PRIu64
                 " MB lie in that time, and one answer is made from at most %" PRIu64
                 " MB: ask for less of it",
                 places->n, bytes / 1000000, BYTES_MAX / 1000000);
}
