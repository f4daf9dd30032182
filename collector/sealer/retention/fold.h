/* SPDX-License-Identifier: Apache-2.0 */
/* Metas of expired segments are folded into the ledger of their day, so that their number does not grow for ever: all
 * of a stream and a day once nothing else is left in their folder. A pass looks at each folder, when the folding starts and
 * every hour, in slices between other work: it finds a folder, reads its metas, writes the record, and clears the rows of
 * the catalog and the files. A folder that cannot be folded now stays as it is.
 *
 * From the record on the catalog has its mark: a start that finds it makes the catalog again, leaves out what a record
 * stands for, and unlinks it. Nobody looks at folders and ledgers meanwhile (tc_day_ledger_lock).
 */
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
  bool goes_on;     /* a pass does */
  uint64_t next_ns; /* a pass begins, or goes on, not before */
  struct tc_archive_place place;
  struct tc__folder *folder;     /* under way; NULL: the next one is looked for */
  uint64_t metas;                /* folded in this pass */
  struct tc_day_ledger recalled; /* of recovery: the last day that was asked for */
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
                              const tc_meta **out);
/* It is over. */
void tc__forget_folded(struct tc__folding *folding);

#endif
