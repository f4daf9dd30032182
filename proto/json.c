/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the message's descriptor; recursion is bounded since a message never contains
 * itself. */
#include "proto/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "proto/utf8.h"

static void write_escape(struct tb_buf *out, unsigned char c) {
  static const char special[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
  const char *at = c == '\0' ? NULL : strchr(special, c);

  if (at != NULL)
    tb_buf_printf(out, "\\%c", letter[at - special]);
  else
    tb_buf_printf(out, "\\u%04X", c);
}

/* Returns true for U+0080 to U+009F in UTF-8, control characters to a terminal. */
static bool is_c1(const char *at) {
  return (unsigned char)at[0] == 0xC2 && (unsigned char)at[1] < 0xA0;
}

void tp_json_bytes(struct tb_buf *out, const char *text, size_t n) {
  bool whole = tp_utf8_whole(text, n) == n;
  size_t from = 0;

  tb_buf_byte(out, '"');
  for (size_t at = 0; at < n; at++) {
    unsigned char c = (unsigned char)text[at];
    bool c1 = whole && c >= 0x80 && is_c1(text + at);
    if (c >= 0x20 && c != 0x7F && c != '"' && c != '\\' && (c < 0x80 || whole) && !c1) continue;
    tb_buf_add(out, text + from, at - from);
    if (c1) c = (unsigned char)text[++at];
    from = at + 1;
    if (c >= 0x80 && !c1)
      tb_buf_byte(out, '?');
    else
      write_escape(out, c);
  }
  tb_buf_add(out, text + from, n - from);
  tb_buf_byte(out, '"');
}

void tp_json_text(struct tb_buf *out, const char *text) {
  if (text == NULL) text = "";
  tp_json_bytes(out, text, strlen(text));
}

static void write_hex(struct tb_buf *out, const ProtobufCBinaryData *bytes) {
  static const char digit[] = "0123456789abcdef";

  tb_buf_byte(out, '"');
  for (size_t i = 0; i < bytes->len; i++) {
    tb_buf_byte(out, (unsigned char)digit[bytes->data[i] >> 4]);
    tb_buf_byte(out, (unsigned char)digit[bytes->data[i] & 15]);
  }
  tb_buf_byte(out, '"');
}

void tp_json_real(struct tb_buf *out, double value) {
  if (isfinite(value))
    tb_buf_printf(out, "%.17g", value);
  else
    tb_buf_text(out, "null");
}

static void write_value(struct tb_buf *out, const ProtobufCFieldDescriptor *field, const void *at) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_SFIXED32:
  case PROTOBUF_C_TYPE_ENUM: tb_buf_printf(out, "%" PRId32, *(const int32_t *)at); break;
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32: tb_buf_printf(out, "%" PRIu32, *(const uint32_t *)at); break;
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SINT64:
  case PROTOBUF_C_TYPE_SFIXED64: tb_buf_printf(out, "%" PRId64, *(const int64_t *)at); break;
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64: tb_buf_printf(out, "%" PRIu64, *(const uint64_t *)at); break;
  case PROTOBUF_C_TYPE_FLOAT: tp_json_real(out, (double)*(const float *)at); break;
  case PROTOBUF_C_TYPE_DOUBLE: tp_json_real(out, *(const double *)at); break;
  case PROTOBUF_C_TYPE_BOOL:
    tb_buf_text(out, *(const protobuf_c_boolean *)at ? "true" : "false");
    break;
  case PROTOBUF_C_TYPE_STRING: tp_json_text(out, *(const char *const *)at); break;
  case PROTOBUF_C_TYPE_BYTES: write_hex(out, at); break;
  case PROTOBUF_C_TYPE_MESSAGE: tp_json_message(out, *(const ProtobufCMessage *const *)at); break;
  }
}

/* Returns the size of an element of a repeated field. */
static size_t value_bytes(const ProtobufCFieldDescriptor *field) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_SFIXED32:
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32:
  case PROTOBUF_C_TYPE_FLOAT:
  case PROTOBUF_C_TYPE_ENUM: return 4;
  case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
  case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
  default: return 8;
  }
}

static void write_list(struct tb_buf *out, const ProtobufCFieldDescriptor *field,
                       const char *message) {
  size_t n = *(const size_t *)(const void *)(message + field->quantifier_offset);
  const char *at = *(const char *const *)(const void *)(message + field->offset);

  tb_buf_byte(out, '[');
  for (size_t i = 0; i < n; i++, at += value_bytes(field)) {
    if (i > 0) tb_buf_byte(out, ',');
    write_value(out, field, at);
  }
  tb_buf_byte(out, ']');
}

/* Returns true for a oneof's member that is not set, and for a message that is NULL. */
static bool is_absent(const ProtobufCFieldDescriptor *field, const char *message) {
  const void *at = message + field->offset;

  if (field->label == PROTOBUF_C_LABEL_REPEATED) return false;
  if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
      *(const uint32_t *)(const void *)(message + field->quantifier_offset) != field->id)
    return true;
  return field->type == PROTOBUF_C_TYPE_MESSAGE && *(const void *const *)at == NULL;
}

void tp_json_fields(struct tb_buf *out, const ProtobufCMessage *message) {
  const ProtobufCMessageDescriptor *d = message->descriptor;
  const char *bytes = (const char *)message;
  bool first = true;

  for (unsigned i = 0; i < d->n_fields; i++) {
    const ProtobufCFieldDescriptor *field = &d->fields[i];
    if (is_absent(field, bytes)) continue;
    tb_buf_text(out, first ? "\"" : ",\"");
    tb_buf_text(out, field->name);
    tb_buf_text(out, "\":");
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
      write_list(out, field, bytes);
    else
      write_value(out, field, bytes + field->offset);
    first = false;
  }
}

void tp_json_message(struct tb_buf *out, const ProtobufCMessage *message) {
  tb_buf_byte(out, '{');
  tp_json_fields(out, message);
  tb_buf_byte(out, '}');
}
