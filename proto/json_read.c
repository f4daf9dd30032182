/* SPDX-License-Identifier: Apache-2.0 */
/* The only file of the daemon that uses jansson. A message never contains itself, so its descriptor bounds the
 * recursion. */
#include "proto/json_read.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/text/hex.h"

struct walk {
  struct tb_arena *arena;
  struct tb_diag *diag;
};

static void json_freep(json_t **json) {
  json_decref(*json);
}

static tb_rc unfit(struct walk *w, const ProtobufCFieldDescriptor *field, const char *wanted) {
  return tb_fail(w->diag, TB_PROTOCOL, "%s: must be %s", field->name, wanted);
}

static tb_rc read_text(struct walk *w, const ProtobufCFieldDescriptor *field, const json_t *json,
                       char **out) {
  if (!json_is_string(json)) return unfit(w, field, "a string");
  return tb_arena_copy(w->arena, json_string_value(json), json_string_length(json) + 1, out);
}

static tb_rc read_bytes(struct walk *w, const ProtobufCFieldDescriptor *field, const json_t *json,
                        ProtobufCBinaryData *out) {
  size_t n = json_string_length(json);

  if (!json_is_string(json) || n % 2 != 0) return unfit(w, field, "a string of hexadecimal bytes");
  TB_TRY(tb_arena_alloc(w->arena, n / 2, &out->data));
  out->len = n / 2;
  return tb_unhex(json_string_value(json), out->data, n / 2)
             ? TB_OK
             : unfit(w, field, "a string of hexadecimal bytes");
}

static tb_rc read_number(struct walk *w, const ProtobufCFieldDescriptor *field, const json_t *json,
                         uint64_t max, uint64_t *out) {
  if (!json_is_integer(json) || json_integer_value(json) < 0 ||
      (uint64_t)json_integer_value(json) > max)
    return unfit(w, field, "a whole number, not too large");
  *out = (uint64_t)json_integer_value(json);
  return TB_OK;
}

static tb_rc read_message(struct walk *w, const ProtobufCMessageDescriptor *of, const json_t *json,
                          ProtobufCMessage **out);

static tb_rc read_value(struct walk *w, const ProtobufCFieldDescriptor *field, const json_t *json,
                        void *at) {
  uint64_t number;

  switch ((int)field->type) {
  case PROTOBUF_C_TYPE_STRING: return read_text(w, field, json, at);
  case PROTOBUF_C_TYPE_BYTES: return read_bytes(w, field, json, at);
  case PROTOBUF_C_TYPE_BOOL:
    if (!json_is_boolean(json)) return unfit(w, field, "true or false");
    *(protobuf_c_boolean *)at = json_is_true(json);
    return TB_OK;
  case PROTOBUF_C_TYPE_UINT32:
    TB_TRY(read_number(w, field, json, UINT32_MAX, &number));
    *(uint32_t *)at = (uint32_t)number;
    return TB_OK;
  case PROTOBUF_C_TYPE_UINT64: return read_number(w, field, json, UINT64_MAX, at);
  case PROTOBUF_C_TYPE_MESSAGE:
    if (!json_is_object(json)) return unfit(w, field, "an object");
    return read_message(w, field->descriptor, json, at);
  default: assert(!"a type that no request has");
  }
  return TB_OK;
}

static tb_rc read_list(struct walk *w, const ProtobufCFieldDescriptor *field, const json_t *json,
                       char *message) {
  size_t n = json_array_size(json);
  void **items;

  if (!json_is_array(json)) return unfit(w, field, "a list");
  assert(field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE);
  TB_TRY(tb_arena_alloc(w->arena, n * sizeof *items, &items));
  for (size_t i = 0; i < n; i++) TB_TRY(read_value(w, field, json_array_get(json, i), &items[i]));
  *(size_t *)(void *)(message + field->quantifier_offset) = n;
  *(void ***)(void *)(message + field->offset) = items;
  return TB_OK;
}

static tb_rc read_message(struct walk *w, const ProtobufCMessageDescriptor *of, const json_t *json,
                          ProtobufCMessage **out) {
  const char *name;
  json_t *value;
  char *message;

  TB_TRY(tb_arena_alloc(w->arena, of->sizeof_message, &message));
  protobuf_c_message_init(of, message);
  json_object_foreach((json_t *)(uintptr_t)json, name, value) {
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(of, name);

    if (field == NULL)
      return tb_fail(w->diag, TB_PROTOCOL, "no field \"%.60s\" in a %s", name, of->short_name);
    TB_TRY(field->label == PROTOBUF_C_LABEL_REPEATED
               ? read_list(w, field, value, message)
               : read_value(w, field, value, message + field->offset));
  }
  *out = (ProtobufCMessage *)(void *)message;
  return TB_OK;
}

tb_rc tp_json_read(const ProtobufCMessageDescriptor *of, const void *text, size_t n,
                   struct tb_arena *arena, struct tb_diag *diag, ProtobufCMessage **out) {
  struct walk w = { arena, diag };
  json_error_t why;
  TB_CLEANUP(json_freep)
  json_t *json = n > 0 ? json_loadb(text, n, JSON_REJECT_DUPLICATES, &why) : json_object();

  if (json == NULL && n == 0) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  if (json == NULL)
    return tb_fail(diag, json_error_code(&why) == json_error_out_of_memory ? TB_NOMEM : TB_PROTOCOL,
                   "not JSON: line %d, column %d: %s", why.line, why.column, why.text);
  if (!json_is_object(json)) return tb_fail(diag, TB_PROTOCOL, "not an object of JSON");
  return read_message(&w, of, json, out);
}
