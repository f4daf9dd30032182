/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tb_buf_init(struct tb_buf *buf, struct tb_mem *mem) {
  *buf = (struct tb_buf){ .mem = mem };
}

void tb_buf_fini(struct tb_buf *buf) {
  if (buf->mem != NULL) tb_mem_free(buf->mem, buf->data, buf->cap);
  *buf = (struct tb_buf){ 0 };
}

void tb_buf_clear(struct tb_buf *buf) {
  buf->len = 0;
  buf->rc = TB_OK;
}

tb_rc tb_buf_reserve(struct tb_buf *buf, size_t more) {
  if (buf->rc != TB_OK) return buf->rc;
  if (more <= buf->cap - buf->len) return TB_OK;
  if (more > SIZE_MAX / 2 - buf->len) return buf->rc = TB_BUDGET;

  size_t cap = buf->cap < 256 ? 256 : buf->cap * 2;
  if (cap < buf->len + more) cap = buf->len + more;
  void *data = buf->data;
  buf->rc = tb_mem_resize(buf->mem, &data, buf->cap, cap);
  if (buf->rc != TB_OK) return buf->rc;
  buf->data = data;
  buf->cap = cap;
  return TB_OK;
}

void tb_buf_add(struct tb_buf *buf, const void *bytes, size_t n) {
  if (tb_buf_reserve(buf, n) != TB_OK || n == 0) return;
  memcpy(buf->data + buf->len, bytes, n);
  buf->len += n;
}

void tb_buf_text(struct tb_buf *buf, const char *text) {
  tb_buf_add(buf, text, strlen(text));
}

void tb_buf_byte(struct tb_buf *buf, unsigned char byte) {
  tb_buf_add(buf, &byte, 1);
}

void tb_buf_printf(struct tb_buf *buf, const char *fmt, ...) {
  va_list args;
  int n;

  va_start(args, fmt);
  n = vsnprintf(NULL, 0, fmt, args);
  va_end(args);
  if (n < 0 || tb_buf_reserve(buf, (size_t)n + 1) != TB_OK) return;
  va_start(args, fmt);
  vsnprintf((char *)buf->data + buf->len, (size_t)n + 1, fmt, args);
  va_end(args);
  buf->len += (size_t)n;
}
