/* SPDX-License-Identifier: Apache-2.0 */
/* From records to published segments: the state that the files of this room share. */
#ifndef TC_SEALER_SEAL_SEAL_H
#define TC_SEALER_SEAL_SEAL_H

#include "collector/sealer/base/outbox.h"
#include "collector/sealer/catalog/sync.h"
#include "collector/sealer/seal/aside.h"
#include "collector/sealer/verdicts/verdicts.h"
#include "collector/segment/descriptors.h"

struct tc__seal {
  const struct tc__env *env;
  struct tc__catalog_sync *catalog;
  struct tc__streams streams;
  struct tc__file_queue queue;
  struct tc__dirty_files dirty;
  struct tc_descriptors descriptors; /* of the segments in open/ */
  size_t unproven;                   /* resumed files that are not verified yet */
  struct tc__aside aside;
  struct tc_segment *rests; /* files to be moved out of open/ (rests.h) */
  struct tc__verdict_queue verdicts;
  struct tc__outbox outbox;
  uint64_t end_lsn; /* end in the log of the records handled so far */
  uint64_t pass;    /* number of the pass over the open runs (show.h) */
};

#endif
