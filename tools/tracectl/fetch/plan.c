/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch/plan.h"
#include "archive/generation_time.h"
#include "base/grow.h"
#include "proto/frame.pb-c.h"
#include "proto/loss.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef Tracecollect__V1__SegmentInfo segment_info;
typedef Tracecollect__V1__GenerationMeta generation_meta;

void tk_plan_init(struct tk_plan *plan, const struct tk_selector *selector) {
  *plan = (struct tk_plan){ .selector = selector,
                            .since_wall_ns = selector->since_wall_ns,
                            .until_wall_ns = selector->until_wall_ns };
}

void tk_plan_fini(struct tk_plan *plan) {
  for (size_t i = 0; i < plan->n_broken; i++) free(plan->broken[i].reason);
  for (size_t i = 0; i < plan->n_pieces; i++) free(plan->pieces[i].parts);
  free(plan->pieces);
  free(plan->gaps);
  free(plan->absences);
  free(plan->broken);
  *plan = (struct tk_plan){ 0 };
}

static tb_rc with_text(tb_rc rc, struct tb_diag *diag) {
  return rc == TB_OK ? TB_OK : tb_fail(diag, rc, "%s", tb_rc_text(rc));
}

static tb_rc add_gap(struct tk_plan *p, uint64_t first, uint64_t last, const char *why,
                     struct tb_diag *diag) {
  TB_TRY(with_text(TB_GROW(p->gaps, p->gaps_room, p->n_gaps), diag));
  p->gaps[p->n_gaps++] = (struct tk_gap){ first, last, why };
  return TB_OK;
}

static tb_rc add_absence(struct tk_plan *p, uint64_t first, uint64_t last, const char *why,
                         struct tb_diag *diag) {
  TB_TRY(with_text(TB_GROW(p->absences, p->absences_room, p->n_absences), diag));
  p->absences[p->n_absences++] = (struct tk_gap){ first, last, why };
  return TB_OK;
}

static tb_rc add_broken(struct tk_plan *p, uint64_t gen, const char *reason, struct tb_diag *diag) {
  TB_TRY(with_text(TB_GROW(p->broken, p->broken_room, p->n_broken), diag));
  char *copy = strdup(reason);
  if (copy == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  p->broken[p->n_broken++] = (struct tk_broken){ gen, copy };
  return TB_OK;
}

/* Sets the end from which --last counts. The first page names the stream. */
static void take_newest(struct tk_plan *p, const Tracecollect__V1__ListReply *page) {
  if (page->n_streams != 1 || p->selector->last_ns == 0) return;
  uint64_t newest = page->streams[0]->newest_wall_ns;
  if (newest == 0) return; /* nothing is archived yet */
  p->until_wall_ns = newest;
  p->since_wall_ns = newest > p->selector->last_ns ? newest - p->selector->last_ns : 1;
}

static tb_rc add_piece(struct tk_plan *p, const struct tk_piece *piece, struct tb_diag *diag) {
  TB_TRY(with_text(TB_GROW(p->pieces, p->room, p->n_pieces), diag));
  p->pieces[p->n_pieces++] = *piece;
  p->bytes += piece->len;
  return TB_OK;
}

static bool is_asked(const struct tk_plan *p, const generation_meta *g, uint64_t arrived_ns) {
  const struct tk_selector *s = p->selector;
  struct tc_wall wall = tc_generation_wall(g, arrived_ns);

  if (s->first_gen != 0 && g->gen < s->first_gen) return false;
  if (s->last_gen != 0 && g->gen > s->last_gen) return false;
  if (wall.last_ns == 0) return true;
  if (p->since_wall_ns != 0 && wall.last_ns < p->since_wall_ns) return false;
  return p->until_wall_ns == 0 || wall.first_ns <= p->until_wall_ns;
}

static tb_rc check_generation(const segment_info *s, const generation_meta *g, uint64_t end,
                              struct tb_diag *diag) {
  if (g->offset >= TK_TRACE_HEADER_BYTES && g->offset <= s->bytes &&
      g->bytes <= s->bytes - g->offset && (end == 0 || g->offset == end))
    return TB_OK;
  return tb_fail(diag, TB_BROKEN, "segment %" PRIu64 ": the index of its generations is broken",
                 s->id);
}

static bool is_broken(const generation_meta *g) {
  return g->verdict != NULL && g->verdict->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN;
}

static tb_rc add_part(struct tk_piece *piece, const generation_meta *g, struct tb_diag *diag) {
  if (g->hash.len != TC_GENERATION_HASH_BYTES || piece->hash.kind == TC_HASH_SHA256) return TB_OK;
  TB_TRY(with_text(TB_GROW(piece->parts, piece->parts_room, piece->n_parts), diag));
  struct tk_piece_generation *part = &piece->parts[piece->n_parts++];
  part->gen = g->gen;
  part->bytes = g->bytes;
  memcpy(part->hash, g->hash.data, sizeof part->hash);
  return TB_OK;
}

/* Adds the piece and begins an empty one. Hashes are only useful if all generations of the piece have one. */
static tb_rc end_piece(struct tk_plan *p, struct tk_piece *piece, struct tb_diag *diag) {
  if (piece->len == 0) return TB_OK;
  if (piece->n_parts != piece->last_gen - piece->first_gen + 1) {
    free(piece->parts);
    piece->parts = NULL;
    piece->n_parts = 0;
  }
  TB_TRY(add_piece(p, piece, diag));
  piece->parts = NULL;
  piece->n_parts = piece->parts_room = 0;
  piece->len = 0;
  return TB_OK;
}

/* Adds the requested generations of a file: several pieces if the program's clock was set back, or, if it
 * splits, after a broken generation. */
static tb_rc add_generations(struct tk_plan *p, const segment_info *s, struct tk_piece *piece,
                             struct tb_diag *diag) {
  uint64_t end = 0;
  size_t in_piece = 0;

  for (size_t i = 0; i < s->n_generations; i++) {
    const generation_meta *g = s->generations[i];
    TB_TRY(check_generation(s, g, end, diag));
    end = g->offset + g->bytes;
    if (!is_asked(p, g, s->last_arrival_ns)) {
      TB_TRY(end_piece(p, piece, diag));
      continue;
    }
    if (piece->len == 0) {
      piece->first_gen = g->gen;
      piece->offset = g->offset;
      in_piece = 0;
    }
    in_piece++;
    piece->last_gen = g->gen;
    piece->len += g->bytes;
    piece->whole = in_piece == s->n_generations;
    piece->ends_broken = is_broken(g);
    TB_TRY(add_part(piece, g, diag));
    if (!piece->ends_broken) continue;
    TB_TRY(add_broken(p, g->gen, g->verdict->reason, diag));
    if (p->splits_broken) TB_TRY(end_piece(p, piece, diag));
  }
  return end_piece(p, piece, diag);
}

static tb_rc take_generations(struct tk_plan *p, const segment_info *s,
                              const struct tk_piece *whole, struct tb_diag *diag) {
  struct tk_piece piece = *whole;

  piece.len = 0;
  tb_rc rc = add_generations(p, s, &piece, diag);
  free(piece.parts); /* the piece was not added */
  return rc;
}

static tb_rc take_losses(struct tk_plan *p, const segment_info *s, bool with_reason,
                         struct tb_diag *diag) {
  for (size_t i = 0; i < s->n_losses; i++) {
    const Tracecollect__V1__LossMeta *loss = s->losses[i];
    if (loss->first_gen != 0 &&
        (loss->reason != TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN) == with_reason)
      TB_TRY(add_absence(p, loss->first_gen, loss->last_gen, tp_loss_text(loss->reason), diag));
  }
  return TB_OK;
}

static struct tc_content_hash hash_of(const segment_info *s) {
  Tracecollect__V1__ContentHash hash = TRACECOLLECT__V1__CONTENT_HASH__INIT;

  hash.kind = (Tracecollect__V1__HashKind)tc_hash_of_name(s->hash_kind);
  hash.value = s->hash;
  return tc_hash_read(&hash);
}

static tb_rc take_segment(struct tk_plan *p, const segment_info *s, struct tb_diag *diag) {
  /* if a generation is lost for two reasons the first one is shown */
  TB_TRY(take_losses(p, s, true, diag));
  TB_TRY(take_losses(p, s, false, diag));
  if (s->expired) return add_absence(p, s->first_gen, s->last_gen, "expired", diag);
  if (s->bytes < TK_TRACE_HEADER_BYTES)
    return tb_fail(diag, TB_BROKEN, "segment %" PRIu64 " is shorter than a trace's header", s->id);

  struct tk_piece piece = {
    .segment = s->id,
    .first_gen = s->first_gen,
    .last_gen = s->last_gen,
    .offset = TK_TRACE_HEADER_BYTES,
    .len = s->bytes - TK_TRACE_HEADER_BYTES,
    .whole = true,
    .unsafe = s->unsafe_experiment,
    .go_version = s->go_version,
  };
  piece.hash = hash_of(s);
  if (s->n_generations != 0) return take_generations(p, s, &piece, diag);
  piece.ends_broken = strcmp(s->analysis, "broken") == 0;
  if (piece.ends_broken) TB_TRY(add_broken(p, s->first_gen, s->reason, diag));
  return add_piece(p, &piece, diag);
}

tb_rc tk_plan_take(struct tk_plan *plan, const Tracecollect__V1__ListReply *page,
                   struct tb_diag *diag) {
  take_newest(plan, page);
  for (size_t i = 0; i < page->n_segments; i++) TB_TRY(take_segment(plan, page->segments[i], diag));
  return TB_OK;
}

static const char *why_absent(const struct tk_plan *p, uint64_t first, uint64_t last) {
  for (size_t i = 0; i < p->n_absences; i++)
    if (p->absences[i].first_gen <= last && p->absences[i].last_gen >= first)
      return p->absences[i].why;
  if (p->since_wall_ns != 0 || p->until_wall_ns != 0)
    return "not in the archive, or outside the asked time (a clock that was set)";
  return "not in the archive";
}

tb_rc tk_plan_finish(struct tk_plan *p, struct tb_diag *diag) {
  const struct tk_selector *s = p->selector;

  if (p->n_pieces == 0) return TB_OK;
  const struct tk_piece *first = &p->pieces[0], *last = &p->pieces[p->n_pieces - 1];
  if (s->first_gen != 0 && first->first_gen > s->first_gen)
    TB_TRY(add_gap(p, s->first_gen, first->first_gen - 1,
                   why_absent(p, s->first_gen, first->first_gen - 1), diag));
  for (size_t i = 1; i < p->n_pieces; i++) {
    uint64_t before = p->pieces[i - 1].last_gen, to = p->pieces[i].first_gen;
    if (to <= before)
      return tb_fail(diag, TB_BROKEN, "segments %" PRIu64 " and %" PRIu64 " overlap",
                     p->pieces[i - 1].segment, p->pieces[i].segment);
    uint64_t from = before + 1;
    p->pieces[i].begins_file = to != from || (p->splits_broken && p->pieces[i - 1].ends_broken);
    if (to == from) continue;
    TB_TRY(add_gap(p, from, to - 1, why_absent(p, from, to - 1), diag));
  }
  if (s->last_gen != 0 && last->last_gen < s->last_gen)
    TB_TRY(add_gap(p, last->last_gen + 1, s->last_gen,
                   why_absent(p, last->last_gen + 1, s->last_gen), diag));
  return TB_OK;
}
