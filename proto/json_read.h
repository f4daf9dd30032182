/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text as a message of a request: what proto/json.h writes, read by the message's descriptor.
 *
 * Fields may be left out, and stand in any order. Bytes are hexadecimal, 64-bit numbers whole and no larger than a signed
 * one. What the descriptor does not have is an error with its name, and so is a field that is there twice. Lists may
 * hold texts and messages, which is all that requests have.
 *
 * Memory    the message lies in the arena; the text's values are as large as the text while it is read.
 * Errors    TB_PROTOCOL with the reason in diag. TB_BUDGET, TB_NOMEM of the arena.
 */
#ifndef TP_JSON_READ_H
#define TP_JSON_READ_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"

/* No text is the empty message. */
TB_MUST tb_rc tp_json_read(const ProtobufCMessageDescriptor *of, const void *text, size_t n,
                           struct tb_arena *arena, struct tb_diag *diag, ProtobufCMessage **out);

#endif
