/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one input in four with little memory left, so that each allocation is refused some time. */
#ifndef TT_TRACE_BUDGET_H
#define TT_TRACE_BUDGET_H

#include "base/mem.h"

static inline void tt_tighten(struct tb_mem *mem, size_t input_bytes) {
  if (input_bytes % 4 == 3) mem->bytes_max = mem->bytes + (input_bytes / 4) % 64 * 1024;
}

#endif
