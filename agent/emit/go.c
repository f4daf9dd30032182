/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/go.h"

#include <sys/mman.h>

static const uint32_t none = UINT32_MAX;

struct ta_go *ta_goes;
static uint32_t first_free;
static _Atomic uint32_t end;
static uint64_t last_id;

tb_rc ta_goes_make(void) {
  if (ta_goes != NULL) return TB_OK;
  void *map = mmap(NULL, sizeof *ta_goes * TA_GOES_MAX, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return TB_NOMEM;
  ta_goes = map;
  return TB_OK;
}

void ta_goes_reset(void) {
  for (uint32_t i = 0; i < end; i++) {
    atomic_store(&ta_goes[i].word, 0);
    atomic_store(&ta_goes[i].id, 0);
  }
  first_free = none;
  last_id = 0;
  atomic_store(&end, 0);
}

struct ta_go *ta_goes_take(uint32_t name) {
  uint32_t place = first_free;

  if (place != none)
    first_free = ta_goes[place].next_free;
  else if (end < TA_GOES_MAX)
    place = atomic_fetch_add(&end, 1);
  else
    return NULL;
  struct ta_go *go = &ta_goes[place];
  go->regions = 0;
  go->stack = (struct ta_bounds){ 0 };
  atomic_store_explicit(&go->name, name, memory_order_relaxed);
  atomic_store_explicit(&go->id, ++last_id, memory_order_relaxed);
  return go;
}

void ta_goes_give(struct ta_go *go) {
  atomic_store_explicit(&go->word, 0, memory_order_relaxed);
  atomic_store_explicit(&go->id, 0, memory_order_relaxed);
  go->next_free = first_free;
  first_free = (uint32_t)(go - ta_goes);
}

uint32_t ta_goes_end(void) {
  return atomic_load(&end);
}
