/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of protobuf messages in a buffer that grows. Text of a traced program becomes UTF-8.
 */
#ifndef TK_CONVERT_MESSAGE_H
#define TK_CONVERT_MESSAGE_H

#include "base/buf.h"
#include "online/event/generation.h"

/* Leaves out zero. */
void tk_put_number(struct tb_buf *out, unsigned field, uint64_t value);
/* Writes zero, too. */
void tk_put_value(struct tb_buf *out, unsigned field, uint64_t value);
void tk_put_fixed64(struct tb_buf *out, unsigned field, uint64_t value);
void tk_put_bytes(struct tb_buf *out, unsigned field, const void *bytes, size_t n);
void tk_put_text(struct tb_buf *out, unsigned field, struct to_string text);
void tk_put_words(struct tb_buf *out, unsigned field, const char *text);
/* Clears inner. */
void tk_put_message(struct tb_buf *out, unsigned field, struct tb_buf *inner);

#endif
