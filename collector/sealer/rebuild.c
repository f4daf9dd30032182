/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog, made again from the metas: in one go before the thread runs, in slices between other work while it does.
 * Until it is whole, open runs included, it counts as stale: readers wait, retention takes nothing. What is published
 * meanwhile goes into the new one, too. */
#include "base/clock.h"
#include "collector/sealer/private.h"

static const uint64_t AGAIN_NS = 1000000000;

static void note_rebuild(void *self, const char *text) {
  tc__note_as((struct tc_sealer *)self, TC_WARN, 0, "%s", text);
}

tb_rc tc__begin_rebuild(struct tc_sealer *sealer, struct tb_diag *diag) {
  TB_TRY(tc__mark_stale(sealer, diag));
  sealer->half_gone = (struct tc__half_gone){ 0 }; /* finished here, as far as can be */
  return tc_catalog_rebuild_begin(sealer->opt.dirs->state, sealer->opt.dirs->archive, diag,
                                  note_rebuild, sealer, &sealer->rebuild);
}

/* The mark stays where a meta or a folder could not be read: the next start tries again, this run does without it. */
static tb_rc go_on(struct tc_sealer *sealer, uint64_t until_ns, struct tb_diag *diag) {
  struct tc_rebuilt done;
  tb_rc rc = tc_catalog_rebuild_go_on(sealer->rebuild, until_ns, diag, &done);

  if (rc == TB_AGAIN) return rc;
  tc_catalog_rebuild_free(TB_MOVE(sealer->rebuild));
  if (rc == TB_OK && done.unread == 0) tc__unmark_stale(sealer);
  return rc;
}

tb_rc tc__make_catalog_again(struct tc_sealer *sealer, struct tb_diag *diag) {
  tb_rc rc;

  TB_TRY(tc__begin_rebuild(sealer, diag));
  do rc = go_on(sealer, UINT64_MAX, diag);
  while (rc == TB_AGAIN);
  return rc;
}

/* Open runs are not shown yet. */
static tb_rc take_over(struct tc_sealer *sealer, struct tb_diag *diag) {
  TB_TRY(tc_catalog_open(sealer->opt.dirs->state, true, diag, &sealer->catalog));
  sealer->is_rebuilt = true;
  tc__take_totals(sealer);
  tc__forget_shown_runs(sealer);
  tc__begin_show(sealer);
  return TB_OK;
}

/* TB_AGAIN: there is more. */
static tb_rc step(struct tc_sealer *sealer, uint64_t until_ns, struct tb_diag *diag) {
  bool done;

  if (!sealer->is_rebuilt) {
    if (sealer->rebuild == NULL) {
      tc_catalog_close(TB_MOVE(sealer->catalog));
      TB_TRY(tc__begin_rebuild(sealer, diag));
    }
    TB_TRY(go_on(sealer, until_ns, diag));
    TB_TRY(take_over(sealer, diag));
  }
  TB_TRY(tc__show_open_runs(sealer, until_ns, diag, &done));
  if (!sealer->is_rebuilt) return tb_fail(diag, TB_IO, "catalog.sqlite: it failed again");
  return done ? TB_OK : TB_AGAIN;
}

static void end(struct tc_sealer *sealer, tb_rc rc, const struct tb_diag *diag) {
  sealer->is_rebuilt = false;
  sealer->opt.stats->catalog_stale = rc != TB_OK;
  sealer->rebuild_next_ns = tc_mono_ns() + AGAIN_NS;
  if (rc == TB_OK) return;
  tc_catalog_rebuild_free(TB_MOVE(sealer->rebuild));
  tc__note_as(sealer, TC_ERROR, 0,
              "%s; segments are archived, but neither listed nor deleted by age", diag->text);
}

void tc__rebuild_catalog(struct tc_sealer *sealer) {
  struct tb_diag diag = { 0 };
  tb_rc rc;

  do rc = step(sealer, UINT64_MAX, &diag);
  while (rc == TB_AGAIN);
  end(sealer, rc, &diag);
}

bool tc__rebuilds(const struct tc_sealer *sealer) {
  return sealer->rebuild != NULL || sealer->is_rebuilt;
}

void tc__rebuild_some(struct tc_sealer *sealer) {
  struct tb_diag diag = { 0 };

  if (!sealer->opt.stats->catalog_stale) return;
  if (!tc__rebuilds(sealer) && tc_mono_ns() < sealer->rebuild_next_ns) return;
  tb_rc rc = step(sealer, tc_mono_ns() + TC__SHOW_NS, &diag);
  if (rc != TB_AGAIN) end(sealer, rc, &diag);
}

void tc__rebuild_take(struct tc_sealer *sealer, const tc_meta *meta) {
  struct tb_diag diag = { 0 };

  if (sealer->rebuild == NULL || tc_catalog_rebuild_put(sealer->rebuild, meta, &diag) == TB_OK)
    return;
  tc__note_as(sealer, TC_ERROR, 0, "%s; the catalog is made again from the beginning", diag.text);
  tc_catalog_rebuild_free(TB_MOVE(sealer->rebuild));
}
