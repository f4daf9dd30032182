/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *hex(const ProtobufCBinaryData *bytes) {
  static const char digit[] = "0123456789abcdef";
  char *text = malloc(bytes->len * 2 + 1);
  if (text == NULL) return NULL;
  for (size_t i = 0; i < bytes->len; i++) {
    text[2 * i] = digit[bytes->data[i] >> 4];
    text[2 * i + 1] = digit[bytes->data[i] & 15];
  }
  json_t *value = json_stringn(text, bytes->len * 2);
  free(text);
  return value;
}

/* A traced program's strings may hold any bytes, JSON only UTF-8: where they do not fit, every byte
 * beyond ASCII becomes '?'. */
static json_t *text(const char *bytes) {
  json_t *value = json_string(bytes);
  char *ascii = value == NULL ? strdup(bytes) : NULL;

  if (ascii == NULL) return value;
  for (char *c = ascii; *c != '\0'; c++)
    if ((unsigned char)*c >= 0x80) *c = '?';
  value = json_string(ascii);
  free(ascii);
  return value;
}

/* One value of a field's type, wherever it stands. */
static json_t *one_value(const ProtobufCFieldDescriptor *field, const void *at) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_SFIXED32:
  case PROTOBUF_C_TYPE_ENUM: return json_integer(*(const int32_t *)at);
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32: return json_integer(*(const uint32_t *)at);
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SINT64:
  case PROTOBUF_C_TYPE_SFIXED64: return json_integer(*(const int64_t *)at);
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64: {
    uint64_t n = *(const uint64_t *)at;
    return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
  }
  case PROTOBUF_C_TYPE_FLOAT: return json_real((double)*(const float *)at);
  case PROTOBUF_C_TYPE_DOUBLE: return json_real(*(const double *)at);
  case PROTOBUF_C_TYPE_BOOL: return json_boolean(*(const protobuf_c_boolean *)at);
  case PROTOBUF_C_TYPE_STRING: return text(*(const char *const *)at);
  case PROTOBUF_C_TYPE_BYTES: return hex(at);
  case PROTOBUF_C_TYPE_MESSAGE: return tk_json_message(*(const ProtobufCMessage *const *)at);
  }
  return NULL;
}

/* How far apart the values of a repeated field stand. */
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

static json_t *all_values(const ProtobufCFieldDescriptor *field, const char *message) {
  size_t n = *(const size_t *)(const void *)(message + field->quantifier_offset);
  const char *at = *(const char *const *)(const void *)(message + field->offset);
  json_t *array = json_array();

  for (size_t i = 0; i < n && array != NULL; i++, at += value_bytes(field))
    if (json_array_append_new(array, one_value(field, at)) != 0) {
      json_decref(array);
      return NULL;
    }
  return array;
}

/* A oneof's member that is not set, or a message that is not there. */
static bool is_absent(const ProtobufCFieldDescriptor *field, const char *message) {
  const void *at = message + field->offset;

  if (field->label == PROTOBUF_C_LABEL_REPEATED) return false;
  if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
      *(const uint32_t *)(const void *)(message + field->quantifier_offset) != field->id)
    return true;
  return field->type == PROTOBUF_C_TYPE_MESSAGE && *(const void *const *)at == NULL;
}

json_t *tk_json_message(const ProtobufCMessage *message) {
  const ProtobufCMessageDescriptor *d = message->descriptor;
  const char *bytes = (const char *)message;
  json_t *object = json_object();

  for (unsigned i = 0; i < d->n_fields && object != NULL; i++) {
    const ProtobufCFieldDescriptor *field = &d->fields[i];
    if (is_absent(field, bytes)) continue;
    json_t *value = field->label == PROTOBUF_C_LABEL_REPEATED
                        ? all_values(field, bytes)
                        : one_value(field, bytes + field->offset);
    if (json_object_set_new(object, field->name, value) != 0) {
      json_decref(object);
      return NULL;
    }
  }
  return object;
}

bool tk_json_print(const ProtobufCMessage *message) {
  json_t *object = tk_json_message(message);
  if (object == NULL) return false;
  json_dumpf(object, stdout, JSON_COMPACT); /* stdout's own failure is main()'s to tell */
  putchar('\n');
  json_decref(object);
  return true;
}
