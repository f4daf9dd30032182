/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved pages are PROT_NONE, because writable ones count against the system's commit limit (vm.overcommit_memory=2)
 * even before they are touched. */
#include "agent/emit/core/reserve.h"

#include <string.h>
#include <sys/mman.h>

enum { STEP_BYTES = 256 << 10 };

static size_t rounded(size_t bytes) {
  return (bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
}

static size_t usable_bytes(const struct ta_reserve *r, uint32_t items) {
  return rounded(items * r->item_bytes);
}

tb_rc ta_reserve_init(struct ta_reserve *r, size_t item_bytes, uint32_t max, uint32_t min) {
  void *map = MAP_FAILED;

  *r = (struct ta_reserve){ .item_bytes = item_bytes };
  for (r->max = max; r->max >= min; r->max /= 2) {
    map = mmap(NULL, usable_bytes(r, r->max), PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map != MAP_FAILED) break;
  }
  if (map == MAP_FAILED) return TB_NOMEM;
  r->bytes = map;
  r->wiped_on_fork = madvise(map, usable_bytes(r, r->max), MADV_WIPEONFORK) == 0;
  return TB_OK;
}

void ta_reserve_fini(struct ta_reserve *r) {
  if (r->bytes != NULL) munmap(r->bytes, usable_bytes(r, r->max));
  *r = (struct ta_reserve){ 0 };
}

bool ta_reserve_grow(struct ta_reserve *r, uint32_t n) {
  if (n <= r->usable) return true;
  if (n > r->max) return false;
  size_t bytes = usable_bytes(r, n);
  if (mprotect(r->bytes, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  size_t items = bytes / r->item_bytes;
  r->usable = items < r->max ? (uint32_t)items : r->max;
  return true;
}

void ta_reserve_forget(struct ta_reserve *r) {
  if (r->bytes != NULL && !r->wiped_on_fork) memset(r->bytes, 0, r->usable * r->item_bytes);
}
