/* SPDX-License-Identifier: Apache-2.0 */
/* Private: the result of prepare.c that reader.c adopts. */
#ifndef TO_TRACE_PREPARED_H
#define TO_TRACE_PREPARED_H

#include "online/event/tables.h"
#include "online/trace/prepare.h"

struct to_prepared {
  struct tb_mem *mem;
  struct to_generation gen;
  unsigned version;
  tb_rc rc;      /* TB_OK: not ready; TB_AGAIN: a generation; TB_END: the end; else a fault */
  bool headless; /* the fault is in the header */
  uint64_t upto;
  struct tb_diag diag;
};

#endif
