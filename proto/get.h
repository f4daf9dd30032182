/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a packed protobuf message, read where they stand: for messages of which little is wanted. put.h writes them. */
#ifndef TP_GET_H
#define TP_GET_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

struct tp_field {
  uint64_t number, value;    /* value: of a number that is not fixed in size */
  ProtobufCBinaryData bytes; /* lent: of a string, bytes or a message */
};

/* Goes behind the field. False: the message ends here or is broken; then something is left of it. */
bool tp_next_field(ProtobufCBinaryData *at, struct tp_field *out);

#endif
