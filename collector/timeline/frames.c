/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "collector/timeline/private.h"
#include "proto/json.h"

static void put_string(struct tb_buf *out, struct to_string text) {
  tp_json_bytes(out, text.data, text.len);
}

void tc__put_frame(struct tb_buf *out, const struct to_frame *frame) {
  tb_buf_text(out, "{\"function\":");
  put_string(out, frame->function);
  tb_buf_text(out, ",\"file\":");
  put_string(out, frame->file);
  tb_buf_printf(out, ",\"line\":%" PRIu64 "}", frame->line);
}

void tc__put_stack(struct tb_buf *out, const char *name, const struct to_callstack *stack) {
  tb_buf_printf(out, ",\"%s\":[", name);
  for (size_t i = 0; stack != NULL && i < stack->len; i++) {
    if (i > 0) tb_buf_byte(out, ',');
    tc__put_frame(out, stack->frames[i]);
  }
  tb_buf_byte(out, ']');
}
