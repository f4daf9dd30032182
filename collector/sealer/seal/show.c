/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/show.h"

#include <stdio.h>

#include "base/clock.h"
#include "collector/sealer/catalog/meta.h"
#include "collector/sealer/seal/proof.h"

enum { KEPT_AT_ONCE = 32 };

static bool is_shown(const struct tc__file *file) {
  return file->segment->ngens == 0 ||
         (file->shown.gens == file->segment->ngens && file->shown.verdicts);
}

/* Returns the end of the generations whose rows are final, as they have their last verdict. Never includes the last
 * generation, which the run's row needs. */
static size_t upto_kept(const struct tc__file *file) {
  const struct tc_segment *segment = file->segment;
  size_t i = file->shown.kept.generations;

  while (i + 1 < segment->ngens &&
         segment->gens[i].verdict.code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK)
    i++;
  return i - file->shown.kept.generations >= KEPT_AT_ONCE ? i : file->shown.kept.generations;
}

static tb_rc show(struct tc__seal *seal, struct tc__file *file, struct tb_diag *diag) {
  size_t from = file->shown.kept.generations, upto = upto_kept(file);
  tc_meta *next = upto == from ? NULL : tc__build_meta_of(seal->env, file, from, upto);
  tc_meta *rest = tc__build_meta_of(seal->env, file, upto, file->segment->ngens);
  char path[sizeof "open/" + TC_FILE_NAME_BYTES];
  tb_rc rc;

  if (rest == NULL || (next == NULL && upto > from)) {
    rc = tb_fail(diag, TB_NOMEM, "archive: no memory for a meta");
  } else {
    rest->bytes = tc_segment_border(file->segment);
    rest->hash = NULL; /* only a closed file has one */
    snprintf(path, sizeof path, "open/%s", file->segment->name);
    struct tc_open_run run = { .path = path, .kept = file->shown.kept, .next = next, .rest = rest };
    rc = tc_catalog_put_open(seal->catalog->db, &run, diag);
    file->shown.to_keep = run.kept;
  }
  tc__free_meta(next);
  tc__free_meta(rest);
  return rc;
}

static bool is_to_show(const struct tc__seal *seal, const struct tc__file *file) {
  return file != NULL && file->shown.pass != seal->pass && !is_shown(file) && tc__is_proven(file);
}

static struct tc__stream *next_to_show(const struct tc__seal *seal, struct tc__stream *from) {
  while (from != NULL && !is_to_show(seal, from->open)) from = from->next;
  return from;
}

/* Shows one run at least. *out_end: the first stream that is left; NULL: none is. */
static tb_rc show_some(struct tc__seal *seal, struct tc__stream *first, uint64_t until_ns,
                       struct tb_diag *diag, struct tc__stream **out_end) {
  struct tc__stream *at = first;

  do {
    TB_TRY(show(seal, at->open, diag));
    at = next_to_show(seal, at->next);
  } while (at != NULL && tc_mono_ns() < until_ns);
  *out_end = at;
  return TB_OK;
}

static void note_shown(struct tc__seal *seal, struct tc__stream *first,
                       const struct tc__stream *end) {
  for (; first != end; first = first->next) {
    struct tc__file *file = first->open;
    if (!is_to_show(seal, file)) continue;
    file->shown.pass = seal->pass;
    file->shown.gens = file->segment->ngens;
    file->shown.verdicts = true;
    file->shown.kept = file->shown.to_keep;
  }
}

void tc__begin_show(struct tc__seal *seal) {
  seal->pass++;
}

static tb_rc show_slice(struct tc__seal *seal, uint64_t until_ns, struct tb_diag *diag,
                        bool *out_done) {
  struct tc__stream *first = next_to_show(seal, seal->streams.first), *end;
  struct tb_diag why = { 0 };

  *out_done = true;
  if (first == NULL) return TB_OK;
  tb_rc rc = tc_catalog_begin(seal->catalog->db, &why);
  if (rc == TB_OK) rc = show_some(seal, first, until_ns, &why, &end);
  if (rc == TB_OK) rc = tc_catalog_commit(seal->catalog->db, &why);
  if (rc != TB_OK) return tc__catalog_failed(seal->catalog, &why, diag);
  note_shown(seal, first, end);
  *out_done = end == NULL;
  return TB_OK;
}

tb_rc tc__show_open_runs(struct tc__seal *seal, uint64_t until_ns, struct tb_diag *diag,
                         bool *out_done) {
  *out_done = true;
  if (seal->env->opt.config->segment_generations_max <= 1)
    return TB_OK; /* no run stays open at a border */
  if (!tc__catalog_takes_rows(seal->catalog)) return TB_OK;
  TB_TRY(show_slice(seal, until_ns, diag, out_done));
  if (!*out_done || seal->unproven == 0) return TB_OK;
  /* A pass also shows resumed runs, which must be verified first. */
  *out_done = false;
  tb_rc rc = tc__prove_some(seal, until_ns, diag);
  if (rc != TB_OK) return rc == TB_AGAIN ? TB_OK : rc;
  return show_slice(seal, until_ns, diag, out_done);
}

void tc__forget_shown_runs(struct tc__seal *seal) {
  for (struct tc__stream *stream = seal->streams.first; stream != NULL; stream = stream->next)
    if (stream->open != NULL) {
      stream->open->shown.gens = 0;
      stream->open->shown.kept = (struct tc_open_kept){ 0 };
    }
}

tb_rc tc__hide_open_run(struct tc__catalog_sync *sync, const struct tc__file *file,
                        struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (file->shown.gens == 0 || !tc__catalog_takes_rows(sync)) return TB_OK;
  if (tc_catalog_drop_open(sync->db, file->stream->id, file->segment->first_gen, &why) == TB_OK)
    return TB_OK;
  return tc__catalog_failed(sync, &why, diag);
}
