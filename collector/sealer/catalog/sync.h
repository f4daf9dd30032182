/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog, which says what the metas say: kept in step with them, and made again from them where it failed. Metas are
 * what counts. Where the catalog fails nothing waits for it but the mark on the disk that says so: the log lets go of what
 * a meta says, and the next start must know that the catalog does not say it.
 *
 *             fails                  begins                    has all metas                has the open runs, too
 *   IN_STEP ────────> LAGS ────────────────────> IS_MADE ────────────────────> IS_FILLED ────────────────────> IN_STEP
 *                       <──────────────────────────┴─────────────────────────────┘ fails
 *
 * Rows go into it while it is IN_STEP or IS_FILLED; into the one that IS_MADE goes what is published meanwhile. Readers
 * wait while it is not IN_STEP, and retention takes nothing while it takes no rows.
 */
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
  struct tc_catalog *db;      /* NULL while it is made; where it lags, not to be relied on */
  struct tc_rebuild *rebuild; /* while it is made */
  uint64_t next_ns;           /* not made again before then */
  unsigned makings;           /* so often it was made since the start */
  bool is_marked; /* the disk knows, so that the next start makes it again if this run does not */
};

/* Of the last run; made again where it is not there, marked or damaged. */
TB_MUST tb_rc tc__catalog_open(struct tc__catalog_sync *sync, struct tb_diag *diag);
void tc__catalog_close(struct tc__catalog_sync *sync);
/* NULL, or what is wrong. */
const char *tc__catalog_check(const struct tc__catalog_sync *sync);

bool tc__catalog_takes_rows(const struct tc__catalog_sync *sync);
/* An error: the mark cannot be made now. */
TB_MUST tb_rc tc__catalog_failed(struct tc__catalog_sync *sync, const struct tb_diag *why,
                                 struct tb_diag *diag);
/* It has a row of a segment that is not there. */
void tc__catalog_lags(struct tc__catalog_sync *sync);
TB_MUST tb_rc tc__mark_stale(struct tc__catalog_sync *sync, struct tb_diag *diag);
void tc__unmark_stale(struct tc__catalog_sync *sync);

/* Rows that are put between these two are one transaction. Both do nothing while it takes no rows; errors as above. */
TB_MUST tb_rc tc__catalog_begin(struct tc__catalog_sync *sync, struct tb_diag *diag);
TB_MUST tb_rc tc__catalog_commit(struct tc__catalog_sync *sync, struct tb_diag *diag);
TB_MUST tb_rc tc__put_row(struct tc__catalog_sync *sync, const tc_meta *meta, struct tb_diag *diag);
/* It has changed, and with it the sizes that retention goes by. */
void tc__take_totals(struct tc__catalog_sync *sync);

/* It is to be made again, or that goes on (seal/rebuild.h). */
bool tc__catalog_is_due(struct tc__catalog_sync *sync);
bool tc__rebuilds(const struct tc__catalog_sync *sync); /* there is more to do */
/* A slice of making it from the metas. TB_AGAIN: there is more; TB_OK: it IS_FILLED. */
TB_MUST tb_rc tc__catalog_make(struct tc__catalog_sync *sync, uint64_t until_ns,
                               struct tb_diag *diag);
/* It is IN_STEP, or rc says why not. */
void tc__catalog_end_making(struct tc__catalog_sync *sync, tb_rc rc, const struct tb_diag *diag);

#endif
