/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/core/emit.h"

#include "agent/emit/core/reserve.h"

enum { GOES_MIN = 1024, WORD_BITS = 64 };

static const uint32_t none = UINT32_MAX;

struct ta_go *ta_goes;
static struct ta_reserve table;
static uint32_t first_free;
static _Atomic uint32_t end; /* places below have been used in this session */
static _Atomic uint64_t taken[TA_GOES_MAX / WORD_BITS]; /* bit set */
static uint64_t last_id;

tb_rc ta_goes_make(uint32_t max) {
  if (ta_goes != NULL) return TB_OK;
  TB_TRY(ta_reserve_init(&table, sizeof *ta_goes, max, max < GOES_MIN ? max : GOES_MIN));
  ta_goes = (struct ta_go *)(void *)table.bytes;
  return TB_OK;
}

static void begin(void) {
  for (uint32_t i = 0; i * WORD_BITS < end; i++) atomic_store(&taken[i], 0);
  first_free = none;
  last_id = 0;
  atomic_store(&end, 0);
}

void ta_goes_reset(void) {
  for (uint32_t i = 0; i < end; i++) {
    atomic_store(&ta_goes[i].word, 0);
    atomic_store(&ta_goes[i].id, 0);
  }
  begin();
}

void ta_goes_forget(void) {
  ta_reserve_forget(&table);
  begin();
}

static void mark(uint32_t place, bool is_taken) {
  _Atomic uint64_t *word = &taken[place / WORD_BITS];
  uint64_t bit = UINT64_C(1) << place % WORD_BITS;

  if (is_taken)
    atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
  else
    atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

struct ta_go *ta_goes_acquire(uint32_t name) {
  uint32_t place = first_free;

  if (place != none)
    first_free = ta_goes[place].next_free;
  else if (ta_reserve_grow(&table, end + 1))
    place = atomic_fetch_add(&end, 1);
  else
    return NULL;
  struct ta_go *go = &ta_goes[place];
  go->regions = 0;
  go->stack = (struct ta_bounds){ 0 };
  go->held = 0;
  atomic_store_explicit(&go->id, ++last_id, memory_order_relaxed);
  ta_go_name(go, name);
  mark(place, true);
  return go;
}

uint64_t ta_goes_number(void) {
  return ++last_id;
}

void ta_goes_release(struct ta_go *go, uint64_t id) {
  uint32_t place = (uint32_t)(go - ta_goes);

  if (atomic_load_explicit(&go->id, memory_order_relaxed) != id) return;
  atomic_store_explicit(&go->word, 0, memory_order_relaxed);
  atomic_store_explicit(&go->id, 0, memory_order_relaxed);
  mark(place, false);
  go->next_free = first_free;
  first_free = place;
}

struct ta_go *ta_goes_at(uint32_t place) {
  return place < atomic_load(&end) ? &ta_goes[place] : NULL;
}

bool ta_goes_any(void) {
  return atomic_load(&end) > 0;
}

uint32_t ta_goes_next(uint32_t from) {
  uint32_t limit = atomic_load(&end);

  for (uint32_t i = from / WORD_BITS; i * WORD_BITS < limit; i++) {
    uint64_t word = atomic_load_explicit(&taken[i], memory_order_relaxed);
    if (i == from / WORD_BITS) word &= UINT64_MAX << from % WORD_BITS;
    if (word != 0) return i * WORD_BITS + (uint32_t)__builtin_ctzll(word);
  }
  return none;
}
