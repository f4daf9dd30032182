/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a request's message from JSON as proto/json.h writes it, by the message's descriptor.
 *
 * Fields may be left out, in any order. Bytes are hexadecimal, 64-bit numbers whole and no larger than a signed one.
 * Unknown fields are an error with their name, and so are duplicate fields. Lists may contain strings and messages, which
 * is all that requests need.
 *
 * Memory    the message is in the arena; while it is read jansson's values take about as much as the text.
 * Errors    TB_PROTOCOL with the reason in diag. TB_BUDGET, TB_NOMEM of the arena.
 */
#ifndef TP_JSON_READ_H
#define TP_JSON_READ_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"

/* An empty text is the empty message. */
TB_MUST tb_rc tp_json_read(const ProtobufCMessageDescriptor *of, const void *text, size_t n,
                           struct tb_arena *arena, struct tb_diag *diag, ProtobufCMessage **out);

#endif
