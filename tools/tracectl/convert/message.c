/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/convert/message.h"

#include <string.h>

#include "proto/put.h"
#include "proto/utf8.h"

static unsigned char *room_for(struct tb_buf *out, size_t n) {
  return tb_buf_reserve(out, n) == TB_OK ? out->data + out->len : NULL;
}

static void upto(struct tb_buf *out, const unsigned char *at) {
  out->len = (size_t)(at - out->data);
}

void tk_put_value(struct tb_buf *out, unsigned field, uint64_t value) {
  unsigned char *at = room_for(out, TP_FIELD_BYTES);

  if (at != NULL) upto(out, tp_put_varint(tp_put_key(at, field, TP_FIELD_NUMBER), value));
}

void tk_put_number(struct tb_buf *out, unsigned field, uint64_t value) {
  if (value != 0) tk_put_value(out, field, value);
}

void tk_put_fixed64(struct tb_buf *out, unsigned field, uint64_t value) {
  unsigned char *at = room_for(out, TP_FIELD_BYTES + sizeof value);

  if (at == NULL) return;
  at = tp_put_key(at, field, TP_FIELD_FIXED64);
  for (unsigned i = 0; i < sizeof value; i++) *at++ = (unsigned char)(value >> 8 * i);
  upto(out, at);
}

void tk_put_bytes(struct tb_buf *out, unsigned field, const void *bytes, size_t n) {
  unsigned char *at = room_for(out, TP_FIELD_BYTES + n);

  if (at != NULL) upto(out, tp_put_bytes(at, field, bytes, n));
}

static bool is_plain(struct to_string text) {
  return text.len == 0 || tp_utf8_whole(text.data, text.len) == text.len;
}

void tk_put_text(struct tb_buf *out, unsigned field, struct to_string text) {
  struct tb_buf repaired;

  if (is_plain(text)) {
    tk_put_bytes(out, field, text.data, text.len);
    return;
  }
  tb_buf_init(&repaired, out->mem);
  if (tb_buf_reserve(&repaired, 3 * text.len) == TB_OK) {
    repaired.len = tp_utf8_repair(text.data, text.len, (char *)repaired.data);
    tk_put_bytes(out, field, repaired.data, repaired.len);
  } else {
    out->rc = repaired.rc;
  }
  tb_buf_fini(&repaired);
}

void tk_put_words(struct tb_buf *out, unsigned field, const char *text) {
  tk_put_bytes(out, field, text, strlen(text));
}

void tk_put_message(struct tb_buf *out, unsigned field, struct tb_buf *inner) {
  if (inner->rc != TB_OK) out->rc = inner->rc;
  tk_put_bytes(out, field, inner->data, inner->len);
  tb_buf_clear(inner);
}
