/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields of a packed protobuf message in place, for messages of which few fields are needed. put.h writes fields. */
#ifndef TP_GET_H
#define TP_GET_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

struct tp_field {
  uint64_t number, value;    /* value: of a varint field */
  ProtobufCBinaryData bytes; /* of a string, bytes or message field; lent */
};

/* Reads the field at `at` and moves `at` after it. Returns false at the end of the message, or, with bytes left, if it is
 * broken. */
bool tp_next_field(ProtobufCBinaryData *at, struct tp_field *out);

#endif
