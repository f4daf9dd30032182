/* SPDX-License-Identifier: Apache-2.0 */
/* Writes any protobuf message as JSON, with the names of its fields: for `--json` and the HTTP API.
 *
 * Numbers and flags are written even if zero; an absent message is left out, an empty list is an empty array. Bytes are
 * hexadecimal, enums are numbers, 64-bit numbers are not shortened. Text of a traced program may contain any bytes, JSON only
 * UTF-8: in a string that is not UTF-8 each byte beyond ASCII becomes '?'.
 *
 * Errors    those of the buffer, which stores them (base/buf.h).
 */
#ifndef TP_JSON_H
#define TP_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

void tp_json_message(struct tb_buf *out, const ProtobufCMessage *message);
/* Writes the fields without braces, for a caller that adds some of its own. */
void tp_json_fields(struct tb_buf *out, const ProtobufCMessage *message);
void tp_json_text(struct tb_buf *out, const char *text); /* in quotes; NULL: "" */
void tp_json_bytes(struct tb_buf *out, const char *text, size_t n);
void tp_json_real(struct tb_buf *out, double value); /* null if not finite */

#endif
