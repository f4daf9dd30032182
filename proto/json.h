/* SPDX-License-Identifier: Apache-2.0 */
/* Any protobuf message as JSON text, its fields under their own names: what `--json` prints and what
 * the HTTP API answers.
 *
 * Numbers and flags are there even when zero; a message that is absent is left out, a list that is
 * empty is an empty array. Bytes are hexadecimal, enums are numbers, 64-bit numbers are whole. Text of
 * a traced program may hold any bytes, JSON only UTF-8: where a string is not, each byte beyond ASCII
 * becomes '?'.
 *
 * Errors    those of the buffer, which keeps them (base/buf.h).
 */
#ifndef TP_JSON_H
#define TP_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

void tp_json_message(struct tb_buf *out, const ProtobufCMessage *message);
/* Its fields without the braces, for a caller that adds some of its own. Nothing for no fields. */
void tp_json_fields(struct tb_buf *out, const ProtobufCMessage *message);
void tp_json_text(struct tb_buf *out, const char *text); /* with its quotes; NULL: "" */
void tp_json_bytes(struct tb_buf *out, const char *text, size_t n);
void tp_json_real(struct tb_buf *out, double value);     /* null for what is no number */

#endif
