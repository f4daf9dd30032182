/* SPDX-License-Identifier: Apache-2.0 */
/* Metas of expired segments are folded into the ledger of their month, so that their number does not grow for ever: all
 * of a stream and a day once nothing else is left in their folder. A pass looks at each folder, when the folding starts and
 * every hour, in slices between other work.
 *
 *   LOOKS ──> READS ──> WRITES ──> DROPS_ROWS ──> UNLINKS ──> LOOKS
 *     <──────────┴─────────┘ a folder that cannot be folded now stays as it is
 *
 * From WRITES on the catalog has its mark: a start that finds it makes the catalog again, leaves out what a record stands
 * for, and unlinks it. Nobody looks at folders and ledgers meanwhile (tc_month_lock).
 */
#ifndef TC_SEALER_RETENTION_FOLD_H
#define TC_SEALER_RETENTION_FOLD_H

#include "archive/fold.h"
#include "archive/month.h"
#include "archive/walk.h"
#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

struct tc__folder;

enum tc__folding_state {
  TC__FOLDING_LOOKS,
  TC__FOLDING_READS,
  TC__FOLDING_WRITES,
  TC__FOLDING_DROPS_ROWS,
  TC__FOLDING_UNLINKS,
  TC__FOLDING_STATES
};

struct tc__folding {
  const struct tc__env *env;
  struct tc__catalog_sync *catalog;
  const struct tc__streams *streams;
  enum tc__folding_state state;
  bool goes_on;     /* a pass does */
  uint64_t next_ns; /* a pass begins, or goes on, not before */
  struct tc_archive_place place;
  struct tc_month month;
  struct tc__folder *folder; /* but for LOOKS */
  uint64_t metas;            /* folded in this pass */
  /* of recovery: the records of one month */
  struct tc_month_covers covers;
  char covers_day[TC_DAY_BYTES]; /* a day of it; empty: none was read */
};

void tc__folding_init(struct tc__folding *folding, struct tc__catalog_sync *catalog,
                      const struct tc__streams *streams);
void tc__folding_fini(struct tc__folding *folding); /* what is under way is the next start's */
/* One slice, of what is due. */
void tc__fold_some(struct tc__folding *folding, uint64_t until_ns);
/* A folder is under way: nothing else may count on the catalog's mark. */
bool tc__is_folding(const struct tc__folding *folding);
/* A stop: what is half folded is finished. */
void tc__end_folding(struct tc__folding *folding);
/* Recovery: the record of a ledger that has this record of a stream; NULL: none has. Lent until the next call. */
TB_MUST tb_rc tc__find_folded(struct tc__folding *folding, const unsigned char stream[16],
                              const char *day, uint64_t seq, struct tb_diag *diag,
                              const struct tc_month_cover **out);
/* It is over. */
void tc__forget_folded(struct tc__folding *folding);

#endif
