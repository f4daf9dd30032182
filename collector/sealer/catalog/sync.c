/* SPDX-License-Identifier: Apache-2.0 */
/* A rebuild runs in one go before the thread starts, and in slices between other work afterwards. */
#include "collector/sealer/catalog/sync.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"

static const uint64_t AGAIN_NS = 1000000000;

static const bool may_become[TC__CATALOG_STATES][TC__CATALOG_STATES] = {
  [TC__CATALOG_LAGS] = { [TC__CATALOG_IS_MADE] = true, [TC__CATALOG_LAGS] = true },
  [TC__CATALOG_IS_MADE] = { [TC__CATALOG_LAGS] = true, [TC__CATALOG_IS_FILLED] = true },
  [TC__CATALOG_IS_FILLED] = { [TC__CATALOG_LAGS] = true, [TC__CATALOG_IN_STEP] = true },
  [TC__CATALOG_IN_STEP] = { [TC__CATALOG_LAGS] = true },
};

static void become(struct tc__catalog_sync *sync, enum tc__catalog_state state) {
  assert(may_become[sync->state][state]);
  sync->state = state;
  sync->env->opt.stats->catalog_stale = state != TC__CATALOG_IN_STEP;
}

const char *tc__catalog_check(const struct tc__catalog_sync *sync) {
  bool is_made = sync->state == TC__CATALOG_IS_MADE;

  if (is_made != (sync->rebuild != NULL)) return "rebuild and state do not match";
  if (is_made && sync->db != NULL) return "two catalogs at once";
  if (is_made && !sync->is_marked) return "a rebuild without a mark";
  if (sync->state >= TC__CATALOG_IS_FILLED && sync->db == NULL) return "no catalog is open";
  return NULL;
}

/* A reader, too, may find the catalog damaged and set catalog_stale (store.c). */
bool tc__catalog_takes_rows(const struct tc__catalog_sync *sync) {
  enum tc__catalog_state state = sync->state;

  return state == TC__CATALOG_IS_FILLED ||
         (state == TC__CATALOG_IN_STEP && !sync->env->opt.stats->catalog_stale);
}

tb_rc tc__mark_stale(struct tc__catalog_sync *sync, struct tb_diag *diag) {
  if (sync->is_marked) return TB_OK;
  TB_TRY(tc_catalog_mark_stale(sync->env->opt.dirs->state, sync->env->opt.durable, diag));
  sync->is_marked = true;
  return TB_OK;
}

void tc__unmark_stale(struct tc__catalog_sync *sync) {
  tc_catalog_unmark_stale(sync->env->opt.dirs->state);
  sync->is_marked = false;
}

tb_rc tc__catalog_failed(struct tc__catalog_sync *sync, const struct tb_diag *why,
                         struct tb_diag *diag) {
  if (sync->db != NULL) tc_catalog_rollback(sync->db);
  if (!sync->env->opt.stats->catalog_stale)
    tc__note_as(sync->env, TC_ERROR, 0, "%s; it will be rebuilt", why->text);
  if (sync->state != TC__CATALOG_IS_MADE) become(sync, TC__CATALOG_LAGS);
  return tc__mark_stale(sync, diag);
}

void tc__catalog_lags(struct tc__catalog_sync *sync) {
  if (sync->state == TC__CATALOG_IN_STEP) become(sync, TC__CATALOG_LAGS);
}

tb_rc tc__catalog_begin(struct tc__catalog_sync *sync, struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (!tc__catalog_takes_rows(sync) || tc_catalog_begin(sync->db, &why) == TB_OK) return TB_OK;
  return tc__catalog_failed(sync, &why, diag);
}

tb_rc tc__catalog_commit(struct tc__catalog_sync *sync, struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (!tc__catalog_takes_rows(sync) || tc_catalog_commit(sync->db, &why) == TB_OK) return TB_OK;
  return tc__catalog_failed(sync, &why, diag);
}

/* Adds a row to the catalog that is being rebuilt. If that fails the rebuild starts over. */
static void put_into_new(struct tc__catalog_sync *sync, const tc_meta *meta) {
  struct tb_diag diag = { 0 };

  if (sync->rebuild == NULL || tc_catalog_rebuild_put(sync->rebuild, meta, &diag) == TB_OK) return;
  tc__note_as(sync->env, TC_ERROR, 0, "%s; the rebuild of the catalog starts over", diag.text);
  tc_catalog_rebuild_free(TB_MOVE(sync->rebuild));
  become(sync, TC__CATALOG_LAGS);
}

tb_rc tc__put_row(struct tc__catalog_sync *sync, const tc_meta *meta, struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (!tc__catalog_takes_rows(sync)) {
    TB_TRY(tc__mark_stale(sync, diag));
    put_into_new(sync, meta);
    return TB_OK;
  }
  if (tc_catalog_put(sync->db, meta, &why) == TB_OK) return TB_OK;
  return tc__catalog_failed(sync, &why, diag);
}

static tb_rc take_totals(struct tc__catalog_sync *sync, struct tb_diag *diag) {
  struct tc_catalog_totals totals;

  TB_TRY(tc_catalog_totals(sync->db, diag, &totals));
  tc_gauge(&sync->env->opt.stats->archive_bytes, totals.bytes);
  tc_gauge(&sync->env->opt.stats->archive_segments, totals.segments);
  tc_gauge(&sync->env->opt.stats->expired_segments, totals.expired);
  return TB_OK;
}

void tc__take_totals(struct tc__catalog_sync *sync) {
  struct tb_diag diag = { 0 }, words = { 0 };

  if (tc__catalog_takes_rows(sync) && take_totals(sync, &diag) == TB_CORRUPT)
    (void)!tc__catalog_failed(sync, &diag, &words);
}

static void note_rebuild(void *self, const char *text) {
  tc__note_as(((const struct tc__catalog_sync *)self)->env, TC_WARN, 0, "%s", text);
}

static tb_rc begin_rebuild(struct tc__catalog_sync *sync, struct tb_diag *diag) {
  tc_catalog_close(TB_MOVE(sync->db));
  TB_TRY(tc__mark_stale(sync, diag));
  sync->makings++;
  TB_TRY(tc_catalog_rebuild_begin(sync->env->opt.dirs->state, sync->env->opt.dirs->archive, diag,
                                  note_rebuild, sync, &sync->rebuild));
  become(sync, TC__CATALOG_IS_MADE);
  return TB_OK;
}

/* The mark stays if a meta or a folder could not be read: the next start tries again. */
tb_rc tc__catalog_make(struct tc__catalog_sync *sync, uint64_t until_ns, struct tb_diag *diag) {
  struct tc_rebuilt done;

  if (sync->state == TC__CATALOG_LAGS) TB_TRY(begin_rebuild(sync, diag));
  tb_rc rc = tc_catalog_rebuild_go_on(sync->rebuild, until_ns, diag, &done);
  if (rc == TB_AGAIN) return rc;
  tc_catalog_rebuild_free(TB_MOVE(sync->rebuild));
  if (rc == TB_OK) rc = tc_catalog_open(sync->env->opt.dirs->state, true, diag, &sync->db);
  if (rc != TB_OK) {
    become(sync, TC__CATALOG_LAGS);
    return rc;
  }
  if (done.unread == 0) tc__unmark_stale(sync);
  become(sync, TC__CATALOG_IS_FILLED);
  return TB_OK;
}

void tc__catalog_end_making(struct tc__catalog_sync *sync, tb_rc rc, const struct tb_diag *diag) {
  sync->next_ns = tc_mono_ns() + AGAIN_NS;
  tc_catalog_rebuild_free(TB_MOVE(sync->rebuild));
  become(sync, rc == TB_OK ? TC__CATALOG_IN_STEP : TC__CATALOG_LAGS);
  if (rc == TB_OK) return;
  tc__note_as(sync->env, TC_ERROR, 0,
              "%s; segments are archived, but neither listed nor deleted by age", diag->text);
}

bool tc__rebuilds(const struct tc__catalog_sync *sync) {
  enum tc__catalog_state state = sync->state;

  return state == TC__CATALOG_IS_MADE || state == TC__CATALOG_IS_FILLED;
}

bool tc__catalog_is_due(struct tc__catalog_sync *sync) {
  if (!sync->env->opt.stats->catalog_stale) return false;
  tc__catalog_lags(sync); /* needed if the flag was set by a reader */
  return tc__rebuilds(sync) || tc_mono_ns() >= sync->next_ns;
}

static tb_rc begin_with(struct tc__catalog_sync *sync, struct tb_diag *diag) {
  tb_rc rc = tc_catalog_forget_live(sync->db, diag);

  return rc == TB_OK ? take_totals(sync, diag) : rc;
}

static tb_rc make_all(struct tc__catalog_sync *sync, struct tb_diag *diag) {
  tb_rc rc;

  do rc = tc__catalog_make(sync, UINT64_MAX, diag);
  while (rc == TB_AGAIN);
  if (rc == TB_OK) rc = begin_with(sync, diag);
  if (rc == TB_OK) become(sync, TC__CATALOG_IN_STEP); /* no open runs to add yet */
  return rc;
}

tb_rc tc__catalog_open(struct tc__catalog_sync *sync, struct tb_diag *diag) {
  struct tb_diag why = { 0 };
  int state_fd = sync->env->opt.dirs->state;
  bool missing = faccessat(state_fd, "catalog.sqlite", F_OK, AT_SYMLINK_NOFOLLOW) != 0;
  bool marked = tc_catalog_is_stale(state_fd);

  if (!missing && !marked && tc_catalog_open(state_fd, true, &why, &sync->db) == TB_OK &&
      begin_with(sync, &why) == TB_OK) {
    sync->state = TC__CATALOG_IN_STEP;
    return TB_OK;
  }
  if (!missing)
    tc__note_as(sync->env, TC_WARN, 0, "%s; catalog.sqlite is rebuilt from the metas",
                marked ? "catalog.sqlite: a write had failed" : why.text);
  return make_all(sync, diag);
}

void tc__catalog_close(struct tc__catalog_sync *sync) {
  tc_catalog_rebuild_free(sync->rebuild);
  tc_catalog_close(sync->db);
}
