/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/fold.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/generation_time.h"
#include "base/grow.h"

struct tc_fold_part { /* the kept part of a segment's meta */
  uint64_t first_seq, last_seq, first_gen, last_gen;
  uint64_t generations, broken, batches, generation_bytes, events, bytes;
  uint64_t first_arrival_ns, last_arrival_ns;
  struct tc_wall wall;
  struct tc_content_hash hash, previous;
};

void tc_fold_fini(struct tc_fold *fold) {
  if (fold->ended != fold->last) tc_meta_free(fold->ended);
  tc_meta_free(fold->last);
  for (size_t i = 0; i < fold->nlosses; i++)
    tracecollect__v1__loss_meta__free_unpacked(fold->losses[i], NULL);
  free(fold->losses);
  free(fold->parts);
  *fold = (struct tc_fold){ 0 };
}

static bool is_broken(const Tracecollect__V1__GenerationMeta *gen) {
  return gen->verdict != NULL && gen->verdict->code > TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
}

static tb_rc add_part(struct tc_fold *fold, const tc_meta *meta) {
  if (meta->n_generations == 0) return TB_OK;
  TB_TRY(TB_GROW(fold->parts, fold->cap, fold->n));
  const Tracecollect__V1__GenerationMeta *first = meta->generations[0],
                                         *last = meta->generations[meta->n_generations - 1];
  struct tc_fold_part *part = &fold->parts[fold->n++];

  *part = (struct tc_fold_part){ .first_seq = first->first_seq,
                                 .last_seq = last->last_seq,
                                 .first_gen = first->gen,
                                 .last_gen = last->gen,
                                 .generations = meta->n_generations,
                                 .bytes = meta->bytes,
                                 .first_arrival_ns = meta->first_wall_ns,
                                 .last_arrival_ns = meta->last_wall_ns,
                                 .wall = tc_meta_wall(meta),
                                 .hash = tc_meta_hash(meta),
                                 .previous = tc_meta_previous(meta) };
  for (size_t i = 0; i < meta->n_generations; i++) {
    const Tracecollect__V1__GenerationMeta *gen = meta->generations[i];
    part->broken += is_broken(gen);
    part->batches += gen->batches;
    part->generation_bytes += gen->bytes;
    part->events += gen->events;
  }
  return TB_OK;
}

static tb_rc take_losses(struct tc_fold *fold, tc_meta *meta) {
  while (meta->n_losses > 0) {
    TB_TRY(TB_GROW(fold->losses, fold->losses_cap, fold->nlosses));
    fold->losses[fold->nlosses++] = meta->losses[--meta->n_losses];
  }
  return TB_OK;
}

static bool has_end(const tc_meta *meta) {
  return meta->ended != NULL && *meta->ended != '\0';
}

/* Makes meta fold->last or fold->ended or both, and frees the metas that are neither any more. */
static void keep_meta(struct tc_fold *fold, tc_meta *meta, uint64_t seq) {
  tc_meta *last = fold->last, *ended = fold->ended;
  bool is_last = last == NULL || seq >= fold->last_seq;
  bool is_ended = has_end(meta) && (ended == NULL || seq >= fold->ended_seq);

  if (is_last) {
    fold->last = meta;
    fold->last_seq = seq;
  }
  if (is_ended) {
    fold->ended = meta;
    fold->ended_seq = seq;
  }
  if (last != fold->last && last != fold->ended) tc_meta_free(last);
  if (ended != last && ended != fold->last && ended != fold->ended) tc_meta_free(ended);
  if (!is_last && !is_ended) tc_meta_free(meta);
}

tb_rc tc_fold_add(struct tc_fold *fold, tc_meta *meta) {
  uint64_t seq = tc_meta_last_seq(meta);
  tb_rc rc = add_part(fold, meta);

  if (rc == TB_OK) rc = take_losses(fold, meta);
  if (rc != TB_OK) {
    tc_meta_free(meta);
    return rc;
  }
  fold->meta.unsafe_experiment |= meta->unsafe_experiment;
  keep_meta(fold, meta, seq);
  return TB_OK;
}

static int by_seq(const void *a, const void *b) {
  const struct tc_fold_part *x = a, *y = b;

  return (x->first_seq > y->first_seq) - (x->first_seq < y->first_seq);
}

static int by_loss(const void *a, const void *b) {
  const Tracecollect__V1__LossMeta *const *x = a, *const *y = b;

  return ((*x)->seq > (*y)->seq) - ((*x)->seq < (*y)->seq);
}

static tb_rc check_chain(const struct tc_fold *fold, struct tb_diag *diag) {
  if (fold->n == 0) return tb_fail(diag, TB_REFUSED, "no segment has expired");
  for (size_t i = 0; i < fold->n; i++) {
    const struct tc_fold_part *part = &fold->parts[i];
    if (part->hash.kind == TC_HASH_NONE)
      return tb_fail(diag, TB_REFUSED, "generation %" PRIu64 " has no content hash",
                     part->first_gen);
    if (i > 0 &&
        (part->first_seq <= part[-1].last_seq || !tc_hash_equal(&part->previous, &part[-1].hash)))
      return tb_fail(diag, TB_REFUSED,
                     "generation %" PRIu64 " does not follow the segment before it",
                     part->first_gen);
  }
  return TB_OK;
}

static void set_time(Tracecollect__V1__GenerationMeta *generation, const struct tc_wall *wall) {
  generation->last_ns = (int64_t)(wall->last_ns - wall->first_ns);
  if (wall->estimated)
    generation->end_wall_ns = wall->last_ns;
  else
    generation->clock_wall_ns = wall->first_ns;
}

static void sum_up(struct tc_fold *fold) {
  const struct tc_fold_part *first = &fold->parts[0], *last = &fold->parts[fold->n - 1];
  Tracecollect__V1__GenerationMeta *generation = &fold->generation;
  struct tc_wall wall = first->wall;
  tc_meta *meta = &fold->meta;

  fold->folded.segments = fold->n;
  fold->folded.last_gen = last->last_gen;
  generation->gen = first->first_gen;
  generation->first_seq = first->first_seq;
  generation->last_seq = last->last_seq;
  meta->first_wall_ns = first->first_arrival_ns;
  for (size_t i = 0; i < fold->n; i++) {
    const struct tc_fold_part *part = &fold->parts[i];
    fold->folded.generations += part->generations;
    fold->folded.broken += part->broken;
    generation->batches += part->batches;
    generation->bytes += part->generation_bytes;
    generation->events += part->events;
    meta->bytes += part->bytes;
    if (part->first_arrival_ns < meta->first_wall_ns) meta->first_wall_ns = part->first_arrival_ns;
    if (part->last_arrival_ns > meta->last_wall_ns) meta->last_wall_ns = part->last_arrival_ns;
    if (part->wall.first_ns < wall.first_ns) wall.first_ns = part->wall.first_ns;
    if (part->wall.last_ns > wall.last_ns) wall.last_ns = part->wall.last_ns;
    wall.estimated |= part->wall.estimated;
  }
  set_time(generation, &wall);
  meta->hash = tc_hash_put(&last->hash, &fold->hash);
  meta->previous = tc_hash_put(&first->previous, &fold->previous);
}

static void copy_names(tc_meta *meta, const tc_meta *last) {
  meta->format = last->format;
  meta->stream = last->stream;
  meta->identity = last->identity;
  meta->service = last->service;
  meta->instance = last->instance;
  meta->trace_header = last->trace_header;
  meta->go_version = last->go_version;
  meta->level = last->level;
  meta->run = last->run;
  meta->day = last->day;
  meta->expired = true;
}

tb_rc tc_fold_end(struct tc_fold *fold, struct tb_diag *diag, const tc_meta **out) {
  bool unsafe = fold->meta.unsafe_experiment;
  tc_meta *meta = &fold->meta;

  if (fold->n > 1) qsort(fold->parts, fold->n, sizeof *fold->parts, by_seq);
  TB_TRY(check_chain(fold, diag));
  if (fold->nlosses > 1) qsort(fold->losses, fold->nlosses, sizeof(void *), by_loss);
  tracecollect__v1__segment_meta__init(meta);
  tracecollect__v1__generation_meta__init(&fold->generation);
  tracecollect__v1__verdict__init(&fold->verdict);
  tracecollect__v1__folded__init(&fold->folded);
  fold->verdict.code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
  fold->generation.verdict = &fold->verdict;
  fold->generations[0] = &fold->generation;
  meta->generations = fold->generations;
  meta->n_generations = 1;
  meta->losses = fold->losses;
  meta->n_losses = fold->nlosses;
  meta->folded = &fold->folded;
  meta->unsafe_experiment = unsafe;
  copy_names(meta, fold->last);
  if (fold->ended != NULL) {
    meta->ended = fold->ended->ended;
    meta->stream_closed = fold->ended->stream_closed;
    meta->produced_batches = fold->ended->produced_batches;
    meta->produced_bytes = fold->ended->produced_bytes;
  }
  sum_up(fold);
  *out = meta;
  return TB_OK;
}
