/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/rebuild.h"

#include "base/clock.h"
#include "collector/sealer/seal/show.h"

static tb_rc rebuild_until(struct tc__seal *seal, uint64_t until_ns, struct tb_diag *diag) {
  struct tc__catalog_sync *sync = seal->catalog;
  bool done;

  if (sync->state != TC__CATALOG_IS_FILLED) {
    TB_TRY(tc__catalog_make(sync, until_ns, diag));
    tc__take_totals(sync);
    tc__forget_shown_runs(seal);
    tc__begin_show(seal);
  }
  TB_TRY(tc__show_open_runs(seal, until_ns, diag, &done));
  if (sync->state != TC__CATALOG_IS_FILLED)
    return tb_fail(diag, TB_IO, "catalog.sqlite: failed again");
  return done ? TB_OK : TB_AGAIN;
}

void tc__rebuild_catalog(struct tc__seal *seal) {
  struct tb_diag diag = { 0 };
  tb_rc rc;

  do rc = rebuild_until(seal, UINT64_MAX, &diag);
  while (rc == TB_AGAIN);
  tc__catalog_end_making(seal->catalog, rc, &diag);
}

void tc__rebuild_some(struct tc__seal *seal) {
  struct tb_diag diag = { 0 };

  if (!tc__catalog_is_due(seal->catalog)) return;
  tb_rc rc = rebuild_until(seal, tc_mono_ns() + TC__SHOW_NS, &diag);
  if (rc != TB_AGAIN) tc__catalog_end_making(seal->catalog, rc, &diag);
}
