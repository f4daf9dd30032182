/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a generation from batches: sorts them by kind, reads the tables and cross-checks them.
 *
 * Memory    the generation's; a batch's bytes must stay as long as the generation (to__keep_batch()
 *           copies those that do not).
 * Errors    TB_BROKEN: see diag. TB_END: a table's last entry is cut off so that Go's reader sees the end
 *           of the trace. TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_EVENT_ASSEMBLE_H
#define TO_EVENT_ASSEMBLE_H

#include "online/event/tables.h"

/* Copies a batch's data into the generation. */
TB_MUST tb_rc to__keep_batch(struct to_generation *gen, struct tw_batch *batch);
/* Adds a batch. offset: of its data in the trace. */
TB_MUST tb_rc to__add_batch(struct to_generation *gen, const struct tw_batch *batch,
                            uint64_t offset, struct tb_diag *diag);
/* Call after the last batch: checks that nothing is missing and sorts the CPU samples. */
TB_MUST tb_rc to__complete(struct to_generation *gen, struct tb_diag *diag);

#endif
