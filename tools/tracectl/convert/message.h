/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of protobuf messages in a buffer that grows. Text of a traced program becomes UTF-8.
 */
#ifndef TK_CONVERT_MESSAGE_H
#define TK_CONVERT_MESSAGE_H

#include "base/buf.h"
#include "online/event/generation.h"

/* A zero is left out. */
void tk_put_number(struct tb_buf *out, unsigned field, uint64_t value);
/* A zero is written, too. */
void tk_put_value(struct tb_buf *out, unsigned field, uint64_t value);
void tk_put_fixed64(struct tb_buf *out, unsigned field, uint64_t value);
void tk_put_bytes(struct tb_buf *out, unsigned field, const void *bytes, size_t n);
void tk_put_text(struct tb_buf *out, unsigned field, struct to_string text);
void tk_put_words(struct tb_buf *out, unsigned field, const char *text);
/* inner is cleared. */
void tk_put_message(struct tb_buf *out, unsigned field, struct tb_buf *inner);

#endif
