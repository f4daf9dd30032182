/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the kinds block, sync and net, which differ by the classes of reasons. Private to this room. */
#ifndef TO_ANALYSIS_BLOCK_H
#define TO_ANALYSIS_BLOCK_H

#include "online/analysis/analysis_state.h"

enum to__block_part { TO__BLOCK_ALL, TO__BLOCK_SYNC, TO__BLOCK_NET, TO__BLOCK_PARTS };

enum { TO__BLOCK_FIGURES = 5, TO__BLOCK_TABLES = 6 };
extern const struct to_field to__block_figure[TO__BLOCK_FIGURES];
extern const struct to_table_schema to__block_table[TO__BLOCK_TABLES];

TB_MUST tb_rc to__block_report(struct to_analyses *a, const struct to_view *view,
                               struct to_draft *d, enum to__block_part part);

#endif
