/* SPDX-License-Identifier: Apache-2.0 */
/* Runs while they are written. A reader that asks for what is archived sees their complete generations without a run
 * being cut for it: the catalog gets a row for each run that has grown, marked as open, with the file in open/ as its
 * path. Sealing makes it an ordinary row of the same id. */
#include <stdio.h>

#include "base/clock.h"
#include "collector/sealer/private.h"

enum { KEPT_AT_ONCE = 32, SHOW_MS = 1000 };

static bool is_shown(const struct tc__file *file) {
  return file->segment->ngens == 0 ||
         (file->shown.gens == file->segment->ngens && file->shown.verdicts);
}

/* Those that have their last verdict, but for the last generation, which the row needs. */
static size_t upto_kept(const struct tc__file *file) {
  const struct tc_segment *segment = file->segment;
  size_t i = file->shown.kept.generations;

  while (i + 1 < segment->ngens &&
         segment->gens[i].verdict.code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK)
    i++;
  return i - file->shown.kept.generations >= KEPT_AT_ONCE ? i : file->shown.kept.generations;
}

static tb_rc show(struct tc_sealer *sealer, struct tc__file *file, struct tb_diag *diag) {
  size_t from = file->shown.kept.generations, upto = upto_kept(file);
  tc_meta *next = upto == from ? NULL : tc__build_meta_of(sealer, file, from, upto);
  tc_meta *rest = tc__build_meta_of(sealer, file, upto, file->segment->ngens);
  char path[sizeof "open/" + TC_FILE_NAME_BYTES];
  tb_rc rc;

  if (rest == NULL || (next == NULL && upto > from)) {
    rc = tb_fail(diag, TB_NOMEM, "archive: no memory for a meta");
  } else {
    rest->bytes = tc_segment_border(file->segment);
    rest->hash = NULL; /* of a whole file only */
    snprintf(path, sizeof path, "open/%s", file->segment->name);
    struct tc_open_run run = { .path = path, .kept = file->shown.kept, .next = next, .rest = rest };
    rc = tc_catalog_put_open(sealer->catalog.db, &run, diag);
    file->shown.to_keep = run.kept;
  }
  tc__free_meta(next);
  tc__free_meta(rest);
  return rc;
}

static bool is_to_show(const struct tc_sealer *sealer, const struct tc__file *file) {
  return file != NULL && file->shown.pass != sealer->show.pass && !is_shown(file) &&
         tc__is_proven(file);
}

static struct tc__stream *next_to_show(const struct tc_sealer *sealer, struct tc__stream *from) {
  while (from != NULL && !is_to_show(sealer, from->open)) from = from->next;
  return from;
}

/* One at least. *out_end: the first that was not looked at; NULL: all were. */
static tb_rc show_some(struct tc_sealer *sealer, struct tc__stream *first, uint64_t until_ns,
                       struct tb_diag *diag, struct tc__stream **out_end) {
  struct tc__stream *at = first;

  do {
    TB_TRY(show(sealer, at->open, diag));
    at = next_to_show(sealer, at->next);
  } while (at != NULL && tc_mono_ns() < until_ns);
  *out_end = at;
  return TB_OK;
}

static void note_shown(struct tc_sealer *sealer, struct tc__stream *first,
                       const struct tc__stream *end) {
  for (; first != end; first = first->next) {
    struct tc__file *file = first->open;
    if (!is_to_show(sealer, file)) continue;
    file->shown.pass = sealer->show.pass;
    file->shown.gens = file->segment->ngens;
    file->shown.verdicts = true;
    file->shown.kept = file->shown.to_keep;
  }
}

void tc__begin_show(struct tc_sealer *sealer) {
  sealer->show.pass++;
}

/* Those that can be shown; a slice of them, one at least. */
static tb_rc show_slice(struct tc_sealer *sealer, uint64_t until_ns, struct tb_diag *diag,
                        bool *out_done) {
  struct tc__stream *first = next_to_show(sealer, sealer->streams), *end;
  struct tb_diag why = { 0 };

  *out_done = true;
  if (first == NULL) return TB_OK;
  tb_rc rc = tc_catalog_begin(sealer->catalog.db, &why);
  if (rc == TB_OK) rc = show_some(sealer, first, until_ns, &why, &end);
  if (rc == TB_OK) rc = tc_catalog_commit(sealer->catalog.db, &why);
  if (rc != TB_OK) return tc__catalog_failed(sealer, &why, diag);
  note_shown(sealer, first, end);
  *out_done = end == NULL;
  return TB_OK;
}

tb_rc tc__show_open_runs(struct tc_sealer *sealer, uint64_t until_ns, struct tb_diag *diag,
                         bool *out_done) {
  *out_done = true;
  if (sealer->opt.config->segment_generations_max <= 1) return TB_OK; /* never open at a border */
  if (!tc__catalog_takes_rows(sealer)) return TB_OK;
  TB_TRY(show_slice(sealer, until_ns, diag, out_done));
  if (!*out_done || sealer->unproven == 0) return TB_OK;
  /* A pass is over when it has shown those, too, that are read back first. */
  *out_done = false;
  tb_rc rc = tc__prove_some(sealer, until_ns, diag);
  if (rc != TB_OK) return rc == TB_AGAIN ? TB_OK : rc;
  return show_slice(sealer, until_ns, diag, out_done);
}

bool tc__is_asked_to_show(struct tc_sealer *sealer) {
  return atomic_load(&sealer->show.asked) != sealer->show.done;
}

/* Readers that ask while a pass is under way may have come too late for it: they have the next one. */
void tc__show_asked(struct tc_sealer *sealer) {
  uint64_t asked = atomic_load(&sealer->show.asked);
  struct tb_diag diag = { 0 };
  bool done;

  if (asked == sealer->show.done) return;
  if (sealer->show.served == sealer->show.done) {
    sealer->show.served = asked;
    tc__begin_show(sealer);
  }
  /* A failure is noted; they read what the catalog has. */
  (void)!tc__show_open_runs(sealer, tc_mono_ns() + TC__SHOW_NS, &diag, &done);
  if (done) tc__end_show(sealer, sealer->show.served);
}

void tc__end_show(struct tc_sealer *sealer, uint64_t upto) {
  pthread_mutex_lock(&sealer->show.lock);
  sealer->show.done = upto;
  pthread_cond_broadcast(&sealer->show.is_done);
  pthread_mutex_unlock(&sealer->show.lock);
}

void tc_sealer_show_runs(struct tc_sealer *sealer) {
  struct timespec deadline = tc_from_now(SHOW_MS);

  if (sealer->opt.config->segment_generations_max <= 1) return; /* never open at a border */
  pthread_mutex_lock(&sealer->show.lock);
  uint64_t mine = atomic_fetch_add(&sealer->show.asked, 1) + 1;
  tc_wakeup_wake(&sealer->wakeup);
  int rc = 0;
  while (rc == 0 && sealer->show.done < mine)
    rc = pthread_cond_timedwait(&sealer->show.is_done, &sealer->show.lock, &deadline);
  pthread_mutex_unlock(&sealer->show.lock);
}

void tc__forget_shown_runs(struct tc_sealer *sealer) {
  for (struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next)
    if (stream->open != NULL) {
      stream->open->shown.gens = 0;
      stream->open->shown.kept = (struct tc_open_kept){ 0 };
    }
}

tb_rc tc__hide_open_run(struct tc_sealer *sealer, const struct tc__file *file,
                        struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (file->shown.gens == 0 || !tc__catalog_takes_rows(sealer)) return TB_OK;
  if (tc_catalog_drop_open(sealer->catalog.db, file->stream->id, file->segment->first_gen, &why) ==
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
