/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the catalog in step with the metas, and rebuilds it from them after a failure. The metas are authoritative.
 * When the catalog fails, only one thing must succeed: a mark on the disk. The log drops records that a meta has, so
 * the next start must learn from the mark that the catalog misses them.
 *
 *             fails                  begins                    has all metas                has the open runs, too
 *   IN_STEP ────────> LAGS ────────────────────> IS_MADE ────────────────────> IS_FILLED ────────────────────> IN_STEP
 *                       <──────────────────────────┴─────────────────────────────┘ fails
 *
 * The catalog accepts rows while it is IN_STEP or IS_FILLED. While it IS_MADE, segments that are published are added to the new
 * catalog. Readers wait while it is not IN_STEP; retention deletes nothing while it accepts no rows. */
#ifndef TC_SEALER_CATALOG_SYNC_H
#define TC_SEALER_CATALOG_SYNC_H

#include "archive/catalog/write.h"
#include "collector/sealer/base/env.h"

enum tc__catalog_state {
  TC__CATALOG_LAGS,
  TC__CATALOG_IS_MADE,
  TC__CATALOG_IS_FILLED,
  TC__CATALOG_IN_STEP,
  TC__CATALOG_STATES
};

struct tc__catalog_sync {
  const struct tc__env *env;
  enum tc__catalog_state state;
  struct tc_catalog *db;      /* NULL while IS_MADE; unreliable while LAGS */
  struct tc_rebuild *rebuild; /* while IS_MADE */
  uint64_t next_ns;           /* no rebuild before this time */
  unsigned makings;           /* number of rebuilds since the start */
  bool is_marked;             /* the mark is on the disk, for the next start */
};

/* Opens the last start's catalog; rebuilds it if it is missing, marked or damaged. */
TB_MUST tb_rc tc__catalog_open(struct tc__catalog_sync *sync, struct tb_diag *diag);
void tc__catalog_close(struct tc__catalog_sync *sync);
/* Returns NULL, or the broken invariant. */
const char *tc__catalog_check(const struct tc__catalog_sync *sync);

bool tc__catalog_takes_rows(const struct tc__catalog_sync *sync);
/* Marks the catalog as failed. Returns an error if the mark cannot be written now. */
TB_MUST tb_rc tc__catalog_failed(struct tc__catalog_sync *sync, const struct tb_diag *why,
                                 struct tb_diag *diag);
/* Called when the catalog has a row of a segment that does not exist. */
void tc__catalog_lags(struct tc__catalog_sync *sync);
TB_MUST tb_rc tc__mark_stale(struct tc__catalog_sync *sync, struct tb_diag *diag);
void tc__unmark_stale(struct tc__catalog_sync *sync);

/* Rows that are put between begin and commit are one transaction. Both do nothing while the catalog accepts no rows;
 * errors as of tc__catalog_failed(). */
TB_MUST tb_rc tc__catalog_begin(struct tc__catalog_sync *sync, struct tb_diag *diag);
TB_MUST tb_rc tc__catalog_commit(struct tc__catalog_sync *sync, struct tb_diag *diag);
TB_MUST tb_rc tc__put_row(struct tc__catalog_sync *sync, const tc_meta *meta, struct tb_diag *diag);
/* Updates the gauges that retention uses with the catalog's totals. */
void tc__take_totals(struct tc__catalog_sync *sync);

/* A rebuild is due or in progress (seal/rebuild.h). */
bool tc__catalog_is_due(struct tc__catalog_sync *sync);
bool tc__rebuilds(const struct tc__catalog_sync *sync); /* a rebuild is in progress */
/* Rebuilds from the metas until until_ns. TB_AGAIN: not finished; TB_OK: the catalog IS_FILLED. */
TB_MUST tb_rc tc__catalog_make(struct tc__catalog_sync *sync, uint64_t until_ns,
                               struct tb_diag *diag);
/* Ends a rebuild: the catalog is IN_STEP if rc is TB_OK, otherwise it LAGS. */
void tc__catalog_end_making(struct tc__catalog_sync *sync, tb_rc rc, const struct tb_diag *diag);

#endif
