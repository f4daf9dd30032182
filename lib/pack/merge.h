/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up reports of one kind and window, of several streams, into one that has the figures of all their events.
 *
 * A count, a length of time and a size are summed, or have their greatest value if the schema says so; that counts for
 * numbers of now, too, so the parts are of streams that run at once. Distributions are summed with their buckets. A
 * share cannot be summed, as the report does not have what it is a share of. One that the schema calls of_time is a
 * share of the report's time: its mean, weighted by that time, is exact. Others are unknown. Anything else is kept if
 * it is the same in all parts.
 *
 * Rows with equal keys are one row: equal texts and numbers, and stacks whose frames have the same functions, files and
 * lines (program counters differ between processes). Rows of a list are single things; each stays, with one more
 * column, `instance`. A part lists so many rows; the rest is in its row "other", so what is added up for a key may be
 * in "other", too. Therefore sums of rows are lower bounds, and rows_total is an upper bound: each is exact if
 * no part has left rows out. The sum of all rows and "other" is always exact.
 *
 * Times are moved to the wall clock, because each trace has a clock of its own. Numbers and lists of now of streams that
 * have ended do not count if another is live.
 *
 * tp_merge_stretches() adds up consecutive stretches of one stream, in the order of time (TO_WINDOW_STRETCH). The schema
 * says how numbers are added up (over_time). A thing in several lists of one kind is one row, with its newest values; lists of
 * now are those of the last stretch. The sum is of the same stream, and on its clock.
 *
 * Parts of several versions: the sum has the figures, tables and columns that all of them have. A distribution
 * of a version without buckets makes quantiles unknown. Notes say both.
 *
 * Memory    from the arena, no more than the parts have; texts are lent from the parts. Temporary memory is from the
 *           arena's mem and freed before the return.
 * Errors    TB_CORRUPT: no parts, a part without a schema, of another kind or window, or with impossible buckets.
 *           TB_BUDGET, TB_NOMEM.
 */
#ifndef TP_PACK_MERGE_H
#define TP_PACK_MERGE_H

#include "base/arena.h"
#include "proto/report.pb-c.h"

enum { TP_MERGE_ROWS = 4096 }; /* in each table at most; the rest is summed in "other" */

typedef tb_rc tp_merge_fn(struct tb_arena *arena, Tracecollect__V1__StreamReport *const *part,
                          size_t parts, Tracecollect__V1__StreamReport **out);
TB_MUST tb_rc tp_merge(struct tb_arena *arena, Tracecollect__V1__StreamReport *const *part,
                       size_t parts, Tracecollect__V1__StreamReport **out);
TB_MUST tb_rc tp_merge_stretches(struct tb_arena *arena,
                                 Tracecollect__V1__StreamReport *const *part, size_t parts,
                                 Tracecollect__V1__StreamReport **out);

#endif
