/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of reports that are added up: what all of their schemas have.
 *
 * Memory    from the arena; texts and fields are lent from the parts.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TP_PACK_MERGE_SCHEMA_H
#define TP_PACK_MERGE_SCHEMA_H

#include "base/arena.h"
#include "proto/report.pb-c.h"

#define TP_MERGE_INSTANCE "instance" /* the last column of a list */

/* Each part has a schema. of_streams: lists have one more column. *out_whole is set to false if a part has more than the
 * result. */
TB_MUST tb_rc tp_merge_schema(struct tb_arena *arena, Tracecollect__V1__StreamReport *const *part,
                              size_t parts, bool of_streams, bool *out_whole,
                              Tracecollect__V1__ReportSchema **out);
/* Collects the ids of the parts' streams. */
TB_MUST tb_rc tp_merge_streams(struct tb_arena *arena, Tracecollect__V1__StreamReport *const *part,
                               size_t parts, Tracecollect__V1__StreamReport *sum);
/* Returns true for numbers that can be added up. */
bool tp_field_is_number(const Tracecollect__V1__FieldSchema *field);
/* Compares two rows in the schema's order; ties by the key texts, as an analysis does. Below 0: a is first. */
int tp_rows_compare(const Tracecollect__V1__TableSchema *schema, const Tracecollect__V1__Row *a,
                    const Tracecollect__V1__Row *b);

#endif
