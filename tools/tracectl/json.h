/* SPDX-License-Identifier: Apache-2.0 */
/* Any protobuf message as a JSON object, its fields under their own names.
 *
 * Numbers and flags are there even when zero; a message that is absent is left out, a list that is
 * empty is an empty array. Bytes are hexadecimal, enums are numbers. 64-bit numbers are whole.
 */
#ifndef TK_JSON_H
#define TK_JSON_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

json_t *tk_json_message(const ProtobufCMessage *message); /* NULL: out of memory */
/* One line on stdout. False: out of memory. */
bool tk_json_print(const ProtobufCMessage *message);

#endif
