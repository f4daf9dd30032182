/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog beside the metas: in step, or made again from them: in one go before the thread runs, in slices between
 * other work while it does. */
#include "collector/sealer/catalog_sync.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/sealer/private.h"

static const uint64_t AGAIN_NS = 1000000000;

/* ---- states */

static const bool may_become[TC__CATALOG_STATES][TC__CATALOG_STATES] = {
  [TC__CATALOG_LAGS] = { [TC__CATALOG_IS_MADE] = true, [TC__CATALOG_LAGS] = true },
  [TC__CATALOG_IS_MADE] = { [TC__CATALOG_LAGS] = true, [TC__CATALOG_IS_FILLED] = true },
  [TC__CATALOG_IS_FILLED] = { [TC__CATALOG_LAGS] = true, [TC__CATALOG_IN_STEP] = true },
  [TC__CATALOG_IN_STEP] = { [TC__CATALOG_LAGS] = true },
};

static void become(struct tc_sealer *sealer, enum tc__catalog_state state) {
  struct tc__catalog_sync *sync = &sealer->catalog;

  assert(may_become[sync->state][state]);
  sync->state = state;
  sealer->opt.stats->catalog_stale = state != TC__CATALOG_IN_STEP;
}

const char *tc__catalog_check(const struct tc__catalog_sync *sync) {
  bool is_made = sync->state == TC__CATALOG_IS_MADE;

  if (is_made != (sync->rebuild != NULL)) return "a catalog is made in another state";
  if (is_made && sync->db != NULL) return "two catalogs at once";
  if (is_made && !sync->is_marked) return "a catalog is made without a mark";
  if (sync->state >= TC__CATALOG_IS_FILLED && sync->db == NULL) return "no catalog is open";
  return NULL;
}

/* A reader, too, may say that it is damaged (store.c): what is in it does not count from then on. */
bool tc__catalog_takes_rows(const struct tc_sealer *sealer) {
  enum tc__catalog_state state = sealer->catalog.state;

  return state == TC__CATALOG_IS_FILLED ||
         (state == TC__CATALOG_IN_STEP && !sealer->opt.stats->catalog_stale);
}

tb_rc tc__mark_stale(struct tc_sealer *sealer, struct tb_diag *diag) {
  if (sealer->catalog.is_marked) return TB_OK;
  TB_TRY(tc_catalog_mark_stale(sealer->opt.dirs->state, sealer->opt.durable, diag));
  sealer->catalog.is_marked = true;
  return TB_OK;
}

void tc__unmark_stale(struct tc_sealer *sealer) {
  tc_catalog_unmark_stale(sealer->opt.dirs->state);
  sealer->catalog.is_marked = false;
}

tb_rc tc__catalog_failed(struct tc_sealer *sealer, const struct tb_diag *why,
                         struct tb_diag *diag) {
  struct tc__catalog_sync *sync = &sealer->catalog;

  if (sync->db != NULL) tc_catalog_rollback(sync->db);
  if (!sealer->opt.stats->catalog_stale)
    tc__note_as(sealer, TC_ERROR, 0, "%s; it will be rebuilt", why->text);
  if (sync->state != TC__CATALOG_IS_MADE) become(sealer, TC__CATALOG_LAGS);
  return tc__mark_stale(sealer, diag);
}

void tc__catalog_lags(struct tc_sealer *sealer) {
  if (sealer->catalog.state == TC__CATALOG_IN_STEP) become(sealer, TC__CATALOG_LAGS);
}

/* ---- rows */

tb_rc tc__catalog_begin(struct tc_sealer *sealer, struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (!tc__catalog_takes_rows(sealer) || tc_catalog_begin(sealer->catalog.db, &why) == TB_OK)
    return TB_OK;
  return tc__catalog_failed(sealer, &why, diag);
}

tb_rc tc__catalog_commit(struct tc_sealer *sealer, struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (!tc__catalog_takes_rows(sealer) || tc_catalog_commit(sealer->catalog.db, &why) == TB_OK)
    return TB_OK;
  return tc__catalog_failed(sealer, &why, diag);
}

/* Into the one that is made. Where that fails it is made from the beginning. */
static void put_into_new(struct tc_sealer *sealer, const tc_meta *meta) {
  struct tc__catalog_sync *sync = &sealer->catalog;
  struct tb_diag diag = { 0 };

  if (sync->rebuild == NULL || tc_catalog_rebuild_put(sync->rebuild, meta, &diag) == TB_OK) return;
  tc__note_as(sealer, TC_ERROR, 0, "%s; the catalog is made again from the beginning", diag.text);
  tc_catalog_rebuild_free(TB_MOVE(sync->rebuild));
  become(sealer, TC__CATALOG_LAGS);
}

tb_rc tc__put_row(struct tc_sealer *sealer, const tc_meta *meta, struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (!tc__catalog_takes_rows(sealer)) {
    TB_TRY(tc__mark_stale(sealer, diag));
    put_into_new(sealer, meta);
    return TB_OK;
  }
  if (tc_catalog_put(sealer->catalog.db, meta, &why) == TB_OK) return TB_OK;
  return tc__catalog_failed(sealer, &why, diag);
}

static tb_rc take_totals(struct tc_sealer *sealer, struct tb_diag *diag) {
  struct tc_catalog_totals totals;

  TB_TRY(tc_catalog_totals(sealer->catalog.db, diag, &totals));
  tc_gauge(&sealer->opt.stats->archive_bytes, totals.bytes);
  tc_gauge(&sealer->opt.stats->archive_segments, totals.segments);
  tc_gauge(&sealer->opt.stats->expired_segments, totals.expired);
  return TB_OK;
}

void tc__take_totals(struct tc_sealer *sealer) {
  struct tb_diag diag = { 0 }, words = { 0 };

  if (tc__catalog_takes_rows(sealer) && take_totals(sealer, &diag) == TB_CORRUPT)
    (void)!tc__catalog_failed(sealer, &diag, &words);
}

/* ---- made again */

static void note_rebuild(void *self, const char *text) {
  tc__note_as((struct tc_sealer *)self, TC_WARN, 0, "%s", text);
}

static tb_rc begin(struct tc_sealer *sealer, struct tb_diag *diag) {
  struct tc__catalog_sync *sync = &sealer->catalog;

  tc_catalog_close(TB_MOVE(sync->db));
  TB_TRY(tc__mark_stale(sealer, diag));
  sealer->retaining.half_gone = (struct tc__half_gone){ 0 }; /* finished by it, as far as can be */
  TB_TRY(tc_catalog_rebuild_begin(sealer->opt.dirs->state, sealer->opt.dirs->archive, diag,
                                  note_rebuild, sealer, &sync->rebuild));
  become(sealer, TC__CATALOG_IS_MADE);
  return TB_OK;
}

/* TB_AGAIN: there is more. The mark stays where a meta or a folder could not be read: the next start tries again, this
 * run does without it. */
static tb_rc make(struct tc_sealer *sealer, uint64_t until_ns, struct tb_diag *diag) {
  struct tc__catalog_sync *sync = &sealer->catalog;
  struct tc_rebuilt done;

  if (sync->state == TC__CATALOG_LAGS) TB_TRY(begin(sealer, diag));
  tb_rc rc = tc_catalog_rebuild_go_on(sync->rebuild, until_ns, diag, &done);
  if (rc == TB_AGAIN) return rc;
  tc_catalog_rebuild_free(TB_MOVE(sync->rebuild));
  if (rc == TB_OK) rc = tc_catalog_open(sealer->opt.dirs->state, true, diag, &sync->db);
  if (rc != TB_OK) {
    become(sealer, TC__CATALOG_LAGS);
    return rc;
  }
  if (done.unread == 0) tc__unmark_stale(sealer);
  become(sealer, TC__CATALOG_IS_FILLED);
  return TB_OK;
}

static tb_rc step(struct tc_sealer *sealer, uint64_t until_ns, struct tb_diag *diag) {
  struct tc__catalog_sync *sync = &sealer->catalog;
  bool done;

  if (sync->state != TC__CATALOG_IS_FILLED) {
    TB_TRY(make(sealer, until_ns, diag));
    tc__take_totals(sealer);
    tc__forget_shown_runs(sealer);
    tc__begin_show(sealer);
  }
  TB_TRY(tc__show_open_runs(sealer, until_ns, diag, &done));
  if (sync->state != TC__CATALOG_IS_FILLED)
    return tb_fail(diag, TB_IO, "catalog.sqlite: it failed again");
  return done ? TB_OK : TB_AGAIN;
}

static void end(struct tc_sealer *sealer, tb_rc rc, const struct tb_diag *diag) {
  struct tc__catalog_sync *sync = &sealer->catalog;

  sync->next_ns = tc_mono_ns() + AGAIN_NS;
  tc_catalog_rebuild_free(TB_MOVE(sync->rebuild));
  become(sealer, rc == TB_OK ? TC__CATALOG_IN_STEP : TC__CATALOG_LAGS);
  if (rc == TB_OK) return;
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
  enum tc__catalog_state state = sealer->catalog.state;

  return state == TC__CATALOG_IS_MADE || state == TC__CATALOG_IS_FILLED;
}

void tc__rebuild_some(struct tc_sealer *sealer) {
  struct tb_diag diag = { 0 };

  if (!sealer->opt.stats->catalog_stale) return;
  tc__catalog_lags(sealer); /* where a reader says so */
  if (!tc__rebuilds(sealer) && tc_mono_ns() < sealer->catalog.next_ns) return;
  tb_rc rc = step(sealer, tc_mono_ns() + TC__SHOW_NS, &diag);
  if (rc != TB_AGAIN) end(sealer, rc, &diag);
}

/* ---- a start */

static tb_rc begin_with(struct tc_sealer *sealer, struct tb_diag *diag) {
  tb_rc rc = tc_catalog_forget_live(sealer->catalog.db, diag);

  return rc == TB_OK ? take_totals(sealer, diag) : rc;
}

static tb_rc make_all(struct tc_sealer *sealer, struct tb_diag *diag) {
  tb_rc rc;

  do rc = make(sealer, UINT64_MAX, diag);
  while (rc == TB_AGAIN);
  if (rc == TB_OK) rc = begin_with(sealer, diag);
  if (rc == TB_OK) become(sealer, TC__CATALOG_IN_STEP); /* no runs are open yet */
  return rc;
}

tb_rc tc__catalog_open(struct tc_sealer *sealer, struct tb_diag *diag) {
  struct tc__catalog_sync *sync = &sealer->catalog;
  struct tb_diag why = { 0 };
  int state_fd = sealer->opt.dirs->state;
  bool missing = faccessat(state_fd, "catalog.sqlite", F_OK, AT_SYMLINK_NOFOLLOW) != 0;
  /* Where it cannot be seen whether the mark is there, it may be. */
  bool marked =
      faccessat(state_fd, "catalog.stale", F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;

  if (!missing && !marked && tc_catalog_open(state_fd, true, &why, &sync->db) == TB_OK &&
      begin_with(sealer, &why) == TB_OK) {
    sync->state = TC__CATALOG_IN_STEP;
    return TB_OK;
  }
  if (!missing)
    tc__note_as(sealer, TC_WARN, 0, "%s; catalog.sqlite is rebuilt from the metas",
                marked ? "catalog.sqlite: a write had failed" : why.text);
  return make_all(sealer, diag);
}

void tc__catalog_close(struct tc__catalog_sync *sync) {
  tc_catalog_rebuild_free(sync->rebuild);
  tc_catalog_close(sync->db);
}
