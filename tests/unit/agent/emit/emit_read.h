/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an emitted trace back, for tests under Criterion. */
#ifndef TT_UNIT_EMIT_EMIT_READ_H
#define TT_UNIT_EMIT_EMIT_READ_H

#include <criterion/criterion.h>

#include "support/order_text.h"
#include "tests/unit/agent/emit/emit_scene.h"
#include "traceagent.h"

/* A whole trace through our reader, which must find no fault. */
static inline struct tt_run read_trace(const struct emitted *e, unsigned trace, const char *what) {
  struct tt_run run = { 0 };
  char text[300];

  tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
  tt_order_bytes(&run, e->trace[trace].bytes, e->trace[trace].n);
  tb_diag_format(&run.diag, text, sizeof text);
  cr_assert_eq(run.rc, TB_OK, "%s: %s: %s", what, tb_rc_name(run.rc), text);
  return run;
}

static inline struct ta_emit_status status_now(void) {
  struct ta_emit_status status = { .size = sizeof status };

  cr_assert_eq(ta_emit_status(&status), 0);
  return status;
}

#endif
