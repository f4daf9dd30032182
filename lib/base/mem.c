/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <string.h>

#include "base/check.h"

void tb_mem_init(struct tb_mem *mem, tb_mem_resize_fn *resize, void *self, size_t bytes_max) {
  *mem = (struct tb_mem){ .resize = resize, .self = self, .bytes_max = bytes_max };
}

tb_rc tb_mem_resize(struct tb_mem *mem, void **block, size_t old_bytes, size_t new_bytes) {
  if (!TB_CHECK(mem->bytes >= old_bytes)) return TB_BUDGET;
  size_t others = mem->bytes - old_bytes;

  if (new_bytes > old_bytes && (others > mem->bytes_max || new_bytes > mem->bytes_max - others))
    return TB_BUDGET;
  void *moved = mem->resize(mem->self, *block, old_bytes, new_bytes);
  if (moved == NULL && new_bytes > 0) return TB_NOMEM;
  mem->bytes = others + new_bytes;
  if (mem->bytes > mem->bytes_peak) mem->bytes_peak = mem->bytes;
  *block = moved;
  return TB_OK;
}

tb_rc tb_mem_alloc(struct tb_mem *mem, size_t bytes, void *out) {
  void *block = NULL;

  TB_TRY(tb_mem_resize(mem, &block, 0, bytes));
  if (block != NULL) memset(block, 0, bytes);
  memcpy(out, &block, sizeof block);
  return TB_OK;
}

void tb_mem_free(struct tb_mem *mem, void *block, size_t bytes) {
  if (block == NULL) return;
  if (!TB_CHECK(mem->bytes >= bytes)) return;
  mem->resize(mem->self, block, bytes, 0);
  mem->bytes -= bytes;
}

tb_rc tb_mem_pass(struct tb_mem *from, struct tb_mem *to, size_t bytes) {
  if (!TB_CHECK(from->bytes >= bytes)) return TB_BUDGET;
  if (to->bytes > to->bytes_max || bytes > to->bytes_max - to->bytes) return TB_BUDGET;
  from->bytes -= bytes;
  to->bytes += bytes;
  if (to->bytes > to->bytes_peak) to->bytes_peak = to->bytes;
  return TB_OK;
}
