/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the metas of a stream and a day whose segments have expired, and its notes of losses, into one meta.
 *
 *     tc_fold_add(&fold, meta);        -- once per meta, in any order; the fold owns meta, even after an error
 *     tc_fold_end(&fold, &diag, &m);   -- returns the combined meta
 *
 * The combined meta keeps the sums of the stream's accounting, both ends of the chain of content hashes and each loss.
 * Time and size of single generations are lost.
 *
 * Memory    200 bytes a meta, and its losses.
 * Threads   use each object from one thread at a time.
 * Errors    add: TB_NOMEM. end: TB_REFUSED: the metas do not form a chain, or nothing has expired.
 */
#ifndef TC_ARCHIVE_FOLD_H
#define TC_ARCHIVE_FOLD_H

#include "archive/meta.h"

struct tc_fold_part;

struct tc_fold {
  struct tc_fold_part *parts;
  size_t n, cap;
  tc_meta *last;  /* meta with the highest record: source of the stream's names */
  tc_meta *ended; /* the highest meta that has the stream's end, or NULL; may be last */
  uint64_t last_seq, ended_seq;
  Tracecollect__V1__LossMeta **losses;
  size_t nlosses, losses_cap;
  /* the combined meta, and what it points to */
  tc_meta meta;
  Tracecollect__V1__GenerationMeta generation, *generations[1];
  Tracecollect__V1__Verdict verdict;
  Tracecollect__V1__ContentHash hash, previous;
  Tracecollect__V1__Folded folded;
};

void tc_fold_fini(struct tc_fold *fold); /* accepts a zeroed one */
TB_MUST tb_rc tc_fold_add(struct tc_fold *fold, tc_meta *meta);
/* The message is lent until tc_fold_fini(). */
TB_MUST tb_rc tc_fold_end(struct tc_fold *fold, struct tb_diag *diag, const tc_meta **out);

#endif
