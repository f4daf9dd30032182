/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with an owner and a limit.
 *
 * The core of lib/ never calls malloc: it allocates from the struct tb_mem that it was given. Every byte is
 * charged there, so a connection's memory is one number that must be zero again when the connection
 * closes, and a test can fail the n-th request.
 *
 * Memory    tb_mem owns only its counters; each block belongs to the caller that allocated it.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET: the charge would exceed bytes_max. TB_NOMEM: the backing allocator failed.
 */
#ifndef TB_MEM_H
#define TB_MEM_H

#include "base/result.h"

/* Works like realloc() with the old size: old_bytes 0 allocates, new_bytes 0 frees and returns NULL. If the
 * allocation fails it returns NULL and the old block stays. Blocks are aligned to 16. */
typedef void *tb_mem_resize_fn(void *self, void *block, size_t old_bytes, size_t new_bytes);

struct tb_mem {
  tb_mem_resize_fn *resize;
  void *self;
  size_t bytes, bytes_peak, bytes_max;
};

void tb_mem_init(struct tb_mem *mem, tb_mem_resize_fn *resize, void *self, size_t bytes_max);

/* On failure *block stays as it was. Fresh bytes are not zeroed. */
TB_MUST tb_rc tb_mem_resize(struct tb_mem *mem, void **block, size_t old_bytes, size_t new_bytes);
/* Allocates zeroed bytes. out: the address of a pointer of any type, untouched on failure. */
TB_MUST tb_rc tb_mem_alloc(struct tb_mem *mem, size_t bytes, void *out);
void tb_mem_free(struct tb_mem *mem, void *block, size_t bytes); /* block may be NULL */
/* Makes `to` the owner of bytes that were allocated from `from`. What backs both must be the same. TB_BUDGET: nothing has changed. */
TB_MUST tb_rc tb_mem_pass(struct tb_mem *from, struct tb_mem *to, size_t bytes);

/* Allocates from the C library; for daemon, tools and tests only. */
tb_mem_resize_fn tb_mem_libc;

#endif
