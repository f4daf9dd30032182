/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the distributions of messages: of several instances, or of several stretches of time.
 *
 * Counts, sums and buckets are added, at the lower of two scales. The quantiles are those of the sum; it has none if a
 * part has lengths that are in no bucket, as those of an older version.
 *
 * Memory    from the arena: the sum's buckets.
 * Errors    TB_BUDGET, TB_NOMEM; TB_CORRUPT if a message has buckets beyond all lengths. Then into is unchanged.
 */
#ifndef TP_PACK_DISTRIBUTION_H
#define TP_PACK_DISTRIBUTION_H

#include "base/arena.h"
#include "proto/report.pb-c.h"

/* into: what tracecollect__v1__distribution__init() made, or an earlier sum. */
TB_MUST tb_rc tp_distribution_add(struct tb_arena *arena, Tracecollect__V1__Distribution *into,
                                  const Tracecollect__V1__Distribution *from);
/* Returns true if each length is in a bucket, so that quantiles can be added up. */
bool tp_distribution_is_whole(const Tracecollect__V1__Distribution *d);
/* Returns the greatest possible error of the quantiles as a share of them, rounded up at the fourth digit: 0.0055 is 0.55 %.
 * 0 if the message has no quantiles. */
double tp_distribution_error(const Tracecollect__V1__Distribution *d);

#endif
