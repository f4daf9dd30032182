/* SPDX-License-Identifier: Apache-2.0 */
/* Folds metas of expired segments into the ledger of their day, so that their number does not grow forever: all metas of a
 * stream and a day once their folder has nothing else. A pass over the folders begins at the start and every hour, and
 * works in slices between other work: it finds a folder, reads its metas, writes a record of them to the ledger, and
 * deletes their rows and files. A folder that cannot be folded now stays as it is.
 *
 * The catalog is marked before the record is written: a start that finds the mark rebuilds the catalog without the metas
 * that a record replaces, and unlinks them. tc_day_ledger_lock() keeps other readers away meanwhile. */
#ifndef TC_SEALER_RETENTION_FOLD_H
#define TC_SEALER_RETENTION_FOLD_H

#include "archive/day_ledger.h"
#include "archive/fold.h"
#include "archive/walk.h"
#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

struct tc__folder;

struct tc__folding {
  const struct tc__env *env;
  struct tc__catalog_sync *catalog;
  const struct tc__streams *streams;
  bool goes_on;     /* a pass is in progress */
  uint64_t next_ns; /* no pass begins or continues before this time */
  struct tc_archive_place place;
  struct tc__folder *folder;     /* being folded; NULL: look for the next one */
  uint64_t metas;                /* folded in this pass */
  struct tc_day_ledger recalled; /* during recovery: the day that was read last */
};

void tc__folding_init(struct tc__folding *folding, struct tc__catalog_sync *catalog,
                      const struct tc__streams *streams);
void tc__folding_fini(struct tc__folding *folding); /* the next start ends a half-done folder */
/* Works for one slice if a pass is due or in progress. */
void tc__fold_some(struct tc__folding *folding, uint64_t until_ns);
/* A folder is being folded and owns the catalog's mark: nothing else may set or remove the mark. */
bool tc__is_folding(const struct tc__folding *folding);
/* For a stop: finishes a folder whose record is written. */
void tc__end_folding(struct tc__folding *folding);
/* For recovery: finds the ledger's record that covers seq of a stream; NULL: none. Borrowed until the next call. */
TB_MUST tb_rc tc__find_folded(struct tc__folding *folding, const unsigned char stream[16],
                              const char *day, uint64_t seq, struct tb_diag *diag,
                              const tc_meta **out);
/* Ends recovery: frees the ledger in memory. */
void tc__forget_folded(struct tc__folding *folding);

#endif
