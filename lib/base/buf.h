/* SPDX-License-Identifier: Apache-2.0 */
/* A growing run of bytes: text being built, a message being packed.
 *
 * Errors    the first failure stays in rc and later appends do nothing, so the caller checks once.
 */
#ifndef TB_BUF_H
#define TB_BUF_H

#include "base/mem.h"

struct tb_buf {
  struct tb_mem *mem;
  unsigned char *data;
  size_t len, cap;
  tb_rc rc;
};

void tb_buf_init(struct tb_buf *buf, struct tb_mem *mem);
void tb_buf_fini(struct tb_buf *buf); /* accepts a zeroed buf */
void tb_buf_clear(struct tb_buf *buf);

TB_MUST tb_rc tb_buf_reserve(struct tb_buf *buf, size_t more);
void tb_buf_add(struct tb_buf *buf, const void *bytes, size_t n);
void tb_buf_text(struct tb_buf *buf, const char *text);
void tb_buf_byte(struct tb_buf *buf, unsigned char byte);
void tb_buf_printf(struct tb_buf *buf, const char *fmt, ...) TB_PRINTF(2, 3);

#endif
