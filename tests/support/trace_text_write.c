/* SPDX-License-Identifier: Apache-2.0 */
#include "support/trace_text.h"

#include <inttypes.h>

#include "wire/batch.h"
#include "wire/raw.h"

static void put_number(struct tb_buf *out, const char *label, uint64_t value) {
  tb_buf_printf(out, " %s=%" PRIu64, label, value);
}

static void put_data(struct tb_buf *out, const unsigned char *bytes, uint64_t n) {
  tb_buf_text(out, "\n    data=\"");
  for (uint64_t i = 0; i < n; i++) {
    unsigned char c = bytes[i];
    if (c == '"' || c == '\\') {
      tb_buf_byte(out, '\\');
      tb_buf_byte(out, c);
    } else if (c == '\n') {
      tb_buf_text(out, "\\n");
    } else if (c < ' ' || c > '~') {
      tb_buf_printf(out, "\\x%02x", c);
    } else {
      tb_buf_byte(out, c);
    }
  }
  tb_buf_byte(out, '"');
}

static void put_event(struct tb_buf *out, const struct tw_raw *event) {
  static const char *const frame[] = { "\n    pc", "func", "file", "line" };
  const unsigned char *pos = event->args;

  tb_buf_text(out, event->spec->name);
  if (tw_spec_has_dt(event->spec)) put_number(out, "dt", tw_raw_number(&pos));
  for (unsigned i = 0; i < event->spec->nargs; i++) {
    uint64_t value = tw_raw_number(&pos);
    if (event->type != TW_EV_EVENT_BATCH || i != 3) /* the size follows from the batch's content */
      put_number(out, event->spec->args[i].label, value);
  }
  for (uint64_t left = event->frames; left > 0; left--)
    for (int k = 0; k < 4; k++) put_number(out, frame[k], tw_raw_number(&pos));
  if (event->spec->kind == TW_KIND_DATA) put_data(out, event->data, event->data_len);
  tb_buf_byte(out, '\n');
}

tb_rc tt_text_write(const unsigned char *bytes, size_t n, struct tb_buf *out,
                    struct tb_diag *diag) {
  unsigned version;
  size_t at = 0, used;

  tb_diag_place(diag, TB_NO_GEN, TB_NO_THREAD, 0);
  if (tw_header_read(bytes, n, diag, &version, &at) != TB_OK)
    return tb_fail(diag, TB_BROKEN, "ends within its header");
  tb_buf_printf(out, "Trace Go1.%u\n", version);
  for (; at < n; at += used) {
    struct tw_raw event;

    tb_diag_place(diag, TB_NO_GEN, TB_NO_THREAD, at);
    tb_rc rc = tw_raw_read(bytes + at, n - at, TW_EV_LIMIT, diag, &event, &used);
    if (rc == TB_OK && event.spec->name == NULL)
      rc = tb_fail(diag, TB_BROKEN, "invalid event type: %u", event.type);
    if (rc != TB_OK) return tb_fail(diag, TB_BROKEN, "ends within an event");
    put_event(out, &event);
    TB_TRY(out->rc);
  }
  return TB_OK;
}
