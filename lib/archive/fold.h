/* SPDX-License-Identifier: Apache-2.0 */
/* Many metas as one: those of a stream and a day whose segments have expired, and its notes of losses.
 *
 *     tc_fold_add(&fold, meta);        -- each, in any order; it is the fold's from then on
 *     tc_fold_end(&fold, &diag, &m);   -- all of them in one
 *
 * The sums of a stream's accounting and its chain of content hashes come out of the one as they came out of the many, and
 * each loss is kept. Single generations are not: when one of them ended, or how large it was, is not known any more.
 *
 * Memory    200 bytes a meta, and its losses.
 * Threads   use each object from one thread at a time.
 * Errors    add: TB_NOMEM; the meta is freed. end: TB_REFUSED, they do not make a chain, or nothing has expired.
 */
#ifndef TC_ARCHIVE_FOLD_H
#define TC_ARCHIVE_FOLD_H

#include "archive/meta.h"

struct tc_fold_part;

struct tc_fold {
  struct tc_fold_part *parts;
  size_t n, cap;
  tc_meta *last;  /* with the highest record: it says how the stream was named */
  tc_meta *ended; /* the same of those that say how it ended, or NULL; may be last */
  uint64_t last_seq, ended_seq;
  Tracecollect__V1__LossMeta **losses;
  size_t nlosses, losses_cap;
  /* what end() puts together: it borrows from these */
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
