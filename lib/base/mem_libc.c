/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdlib.h>

void *tb_mem_libc(void *self, void *block, size_t old_bytes, size_t new_bytes) {
  (void)self;
  (void)old_bytes;
  if (new_bytes == 0) {
    free(block);
    return NULL;
  }
  return realloc(block, new_bytes);
}
