/* SPDX-License-Identifier: Apache-2.0 */
/* Runs while they are written. A reader that asks for what is archived sees their complete generations without a run
 * being cut for it: the catalog gets a row for each run that has grown, marked as open, with the file in open/ as its
 * path. Sealing makes it an ordinary row of the same id. */
#include <stdio.h>

#include "base/clock.h"
#include "collector/sealer/private.h"

static bool is_shown(const struct tc__file *file) {
  return file->segment->ngens == 0 ||
         (file->shown_gens == file->segment->ngens && file->verdict_shown);
}

static tb_rc show(struct tc_sealer *sealer, struct tc__file *file, struct tb_diag *diag) {
  char path[sizeof "open/" + TC_FILE_NAME_BYTES];
  tc_meta *meta = tc__build_meta(sealer, file);

  if (meta == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory for a meta");
  meta->bytes = tc_segment_border(file->segment);
  meta->sha256.len = 0; /* of a whole file only */
  snprintf(path, sizeof path, "open/%s", file->segment->name);
  tb_rc rc = tc_catalog_put_open(sealer->catalog, meta, path, diag);
  tc__free_meta(meta);
  return rc;
}

static tb_rc show_all(struct tc_sealer *sealer, struct tb_diag *diag) {
  for (struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next)
    if (stream->open != NULL && !is_shown(stream->open)) TB_TRY(show(sealer, stream->open, diag));
  return TB_OK;
}

static bool all_are_shown(const struct tc_sealer *sealer) {
  for (const struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next)
    if (stream->open != NULL && !is_shown(stream->open)) return false;
  return true;
}

static void note_shown(struct tc_sealer *sealer) {
  for (struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next) {
    if (stream->open == NULL) continue;
    stream->open->shown_gens = stream->open->segment->ngens;
    stream->open->verdict_shown = true;
  }
}

tb_rc tc__show_open_runs(struct tc_sealer *sealer, struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (sealer->opt.config->segment_generations_max <= 1) return TB_OK; /* never open at a border */
  if (!tc__catalog_takes_rows(sealer) || all_are_shown(sealer)) return TB_OK;
  tb_rc rc = tc_catalog_begin(sealer->catalog, &why);
  if (rc == TB_OK) rc = show_all(sealer, &why);
  if (rc == TB_OK) rc = tc_catalog_commit(sealer->catalog, &why);
  if (rc != TB_OK) return tc__catalog_failed(sealer, &why, diag);
  note_shown(sealer);
  return TB_OK;
}

void tc__forget_shown_runs(struct tc_sealer *sealer) {
  for (struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next)
    if (stream->open != NULL) stream->open->shown_gens = 0;
}

tb_rc tc__hide_open_run(struct tc_sealer *sealer, const struct tc__file *file,
                        struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (file->shown_gens == 0 || !tc__catalog_takes_rows(sealer)) return TB_OK;
  if (tc_catalog_drop_open(sealer->catalog, file->stream->id, file->segment->first_gen, &why) ==
      TB_OK)
    return TB_OK;
  return tc__catalog_failed(sealer, &why, diag);
}

uint64_t tc__run_age_max(const struct tc_sealer *sealer, const struct tc__stream *stream) {
  uint64_t max = sealer->opt.config->segment_seconds_max, parts = 1024;

  return max - stream->ref * UINT64_C(2654435761) % parts * (max / 4 / parts);
}

/* The end of a generation comes as a rule, and seals the run then. */
tb_rc tc__seal_old_runs(struct tc_sealer *sealer, struct tb_diag *diag) {
  uint64_t now = tc_mono_ns();

  for (struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next) {
    const struct tc__file *file = stream->open;
    if (file == NULL || file->segment->ngens == 0) continue;
    uint64_t age = now - file->segment->opened_mono_ns, max = tc__run_age_max(sealer, stream);
    if (file->broken || age >= (file->segment->in_gen ? 2 * max : max))
      TB_TRY(tc__seal_border(sealer, stream, diag));
  }
  return TB_OK;
}
