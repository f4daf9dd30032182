/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/get.h"

#include "wire/varint.h"

enum { TYPE_BITS = 3 };
enum { VARINT, FIXED64, DELIMITED, FIXED32 = 5 }; /* types of a field on the wire */

static bool skip(ProtobufCBinaryData *at, uint64_t n) {
  if (n > at->len) return false;
  at->data += n;
  at->len -= (size_t)n;
  return true;
}

static bool take_varint(ProtobufCBinaryData *at, uint64_t *out) {
  int n = tw_varint_read(at->data, at->data + at->len, out);

  return n > 0 && skip(at, (uint64_t)n);
}

bool tp_next_field(ProtobufCBinaryData *at, struct tp_field *out) {
  uint64_t key, len;

  if (at->len == 0 || !take_varint(at, &key)) return false;
  *out = (struct tp_field){ .number = key >> TYPE_BITS };
  switch (key & ((1 << TYPE_BITS) - 1)) {
  case VARINT: return take_varint(at, &out->value);
  case FIXED64: return skip(at, sizeof(uint64_t));
  case FIXED32: return skip(at, sizeof(uint32_t));
  case DELIMITED:
    if (!take_varint(at, &len) || len > at->len) return false;
    out->bytes = (ProtobufCBinaryData){ (size_t)len, at->data };
    return skip(at, len);
  default: return false;
  }
}
