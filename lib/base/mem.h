/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with an owner and a limit.
 *
 * The core (lib/, and whatever a simulator will drive) never calls malloc: it asks the struct tb_mem
 * it was given. Every byte is charged to it, so a connection's memory is one number that must go back
 * to zero when the connection closes, and a test can fail the n-th request.
 *
 * Memory    tb_mem owns nothing but its counters; each block belongs to who took it.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET: the charge would pass bytes_max. TB_NOMEM: the backing refused.
 */
#ifndef TB_MEM_H
#define TB_MEM_H

#include "base/result.h"

/* Like realloc, which also gets the old size: old_bytes 0 takes, new_bytes 0 gives back (and answers NULL).
 * NULL for new_bytes > 0 means refused, the old block stays. Blocks are aligned to 16. */
typedef void *tb_mem_resize_fn(void *self, void *block, size_t old_bytes, size_t new_bytes);

struct tb_mem {
  tb_mem_resize_fn *resize;
  void *self;
  size_t bytes, bytes_peak, bytes_max;
};

void tb_mem_init(struct tb_mem *mem, tb_mem_resize_fn *resize, void *self, size_t bytes_max);

/* On failure *block stays as it was. Fresh bytes are not zeroed. */
TB_MUST tb_rc tb_mem_resize(struct tb_mem *mem, void **block, size_t old_bytes, size_t new_bytes);
/* Zeroed. out: the address of a pointer of any type, untouched on failure. */
TB_MUST tb_rc tb_mem_take(struct tb_mem *mem, size_t bytes, void *out);
void tb_mem_give(struct tb_mem *mem, void *block, size_t bytes); /* block may be NULL */

/* The C library as backing (base/mem_libc.c: daemon, tools and tests only). */
tb_mem_resize_fn tb_mem_libc;

#endif
