/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of an earlier generation is recognised by its program counters alone, which the generation provides. Stacks with a frame
 * without a counter (a C program may write such) are compared by their text. */
#include "online/spans/stacks/table.h"

#include <string.h>

#include "base/grow.h"

enum { STACK_BYTES_MEAN = 1024, PLACES_MIN = 64 };

static const struct to_stack_recent none_recent[TO_STACK_RECENT];

static void set_store(struct to_stack_table *table, struct to_stack_store *store) {
  table->user =
      (struct to_stack_user){ .store = store, .mem = table->mem, .number = ++store->users };
  table->recent = store->recent;
  table->turn = ++store->turns;
}

void to_stack_table_init(struct to_stack_table *table, struct tb_mem *mem, size_t stacks_max,
                         struct to_stack_store *store) {
  *table = (struct to_stack_table){
    .mem = mem, .recent = none_recent, .epoch = 1, .turn = 1, .stacks_max = stacks_max
  };
  tb_map_init(&table->by_id, mem, tb_seed());
  if (store != NULL) set_store(table, store);
}

static size_t begins_bytes(const struct to_stack_table *table) {
  return table->begins == NULL ? 0 : (size_t)1 << table->begins_bits >> 3;
}

void to_stack_table_fini(struct to_stack_table *table) {
  tb_map_fini(&table->by_id);
  if (table->count > TO_STACK_OTHER)
    to_stack_store_leave(&table->user, table->stack + TO_STACK_OTHER + 1,
                         table->count - TO_STACK_OTHER - 1);
  if (table->mem != NULL) {
    tb_mem_free(table->mem, table->own, sizeof(*table->own));
    tb_mem_free(table->mem, table->stack, table->capacity * sizeof(*table->stack));
    tb_mem_free(table->mem, table->place, table->places * sizeof(*table->place));
    tb_mem_free(table->mem, table->begins, begins_bytes(table));
  }
  *table = (struct to_stack_table){ 0 };
}

void to_stack_table_generation(struct to_stack_table *table) {
  tb_map_clear(&table->by_id);
  table->epoch++;
  if (table->user.store != NULL) table->turn = ++table->user.store->turns;
}

/* Adds the two stacks that always exist. */
static tb_rc open_table(struct to_stack_table *table) {
  static const struct to_callstack none = { 0 };

  if (table->user.store == NULL) {
    TB_TRY(tb_mem_alloc(table->mem, sizeof(*table->own), &table->own));
    to_stack_store_init(table->own, table->mem);
    set_store(table, table->own);
  }
  while (table->count <= TO_STACK_OTHER) {
    TB_TRY(TB_MEM_GROW(table->mem, table->stack, table->capacity, table->count));
    table->stack[table->count++] = &none;
  }
  return TB_OK;
}

static bool table_is_full(const struct to_stack_table *table) {
  return table->count > TO_STACK_OTHER + table->stacks_max ||
         table->bytes / STACK_BYTES_MEAN > table->stacks_max;
}

/* ---- finding a stack ---- */

/* A stack to look up. Stored frames are only compared if a program counter is missing. */
struct wanted_stack {
  size_t len;
  uint64_t pcs[TO_STACK_FRAMES_MAX];
  const struct to_frame *frames[TO_STACK_FRAMES_MAX];
  bool needs_text;
  uint64_t hash;
};

/* Makes the hash that a stored one has: to_callstack_hash(). */
static void hash_wanted(const struct to_stack_table *table, struct wanted_stack *wanted) {
  wanted->hash = table->user.store->seed;
  for (size_t i = 0; i < wanted->len; i++)
    wanted->hash = to_stack_mix(wanted->hash, wanted->pcs[i]);
  for (size_t i = 0; i < wanted->len && wanted->needs_text; i++)
    wanted->hash = to_stack_mix(wanted->hash, (uintptr_t)wanted->frames[i]);
}

static bool same_stack(const struct to_callstack *a, const struct wanted_stack *b) {
  if (a->len != b->len) return false;
  for (size_t i = 0; i < a->len; i++)
    if (b->needs_text ? a->frames[i] != b->frames[i] : a->frames[i]->pc != b->pcs[i]) return false;
  return true;
}

/* Returns the index of the stack; 0: not in the table, which has places. */
static uint32_t find_index(const struct to_stack_table *table, const struct wanted_stack *wanted) {
  size_t i = wanted->hash & (table->places - 1);

  while (table->place[i] != 0 && !same_stack(table->stack[table->place[i]], wanted))
    i = (i + 1) & (table->places - 1);
  return table->place[i];
}

static void put_place(uint32_t *place, size_t places, uint64_t hash, uint32_t index) {
  size_t i = hash & (places - 1);

  while (place[i] != 0) i = (i + 1) & (places - 1);
  place[i] = index;
}

static tb_rc grow_places(struct to_stack_table *table) {
  size_t places = table->places == 0 ? PLACES_MIN : 2 * table->places;
  uint32_t *place;

  if (4 * table->count < 3 * table->places) return TB_OK;
  TB_TRY(tb_mem_alloc(table->mem, places * sizeof(*place), &place));
  for (uint32_t index = TO_STACK_OTHER + 1; index < table->count; index++)
    put_place(place, places, to_callstack_hash(table->stack[index]), index);
  tb_mem_free(table->mem, table->place, table->places * sizeof(*place));
  table->place = place;
  table->places = places;
  return TB_OK;
}

/* Reads the frames of a stack of the generation, or of another table. */
static size_t read_frames(const struct to_generation *gen, uint64_t id,
                          const struct to_callstack *other, struct to_frame *frame) {
  struct to_stack_iter it;
  size_t n = 0;

  if (other != NULL) {
    for (; n < other->len && n < TO_STACK_FRAMES_MAX; n++) frame[n] = *other->frames[n];
  } else if (to_generation_stack_own(gen, id, &it)) {
    while (n < TO_STACK_FRAMES_MAX && to_stack_next(&it, &frame[n])) n++;
  }
  return n;
}

/* Returns true if all frames are stored: only then the stack can be. */
static bool find_frames(const struct to_stack_table *table, const struct to_frame *frame,
                        struct wanted_stack *wanted) {
  for (size_t i = 0; i < wanted->len; i++) {
    wanted->frames[i] = to_stack_store_find(&table->user, &frame[i]);
    if (wanted->frames[i] == NULL) return false;
  }
  return true;
}

static tb_rc add_stack(struct to_stack_table *table, const struct to_frame *frame, size_t n,
                       uint32_t *out_index) {
  const struct to_callstack *stack;
  size_t cost;

  TB_TRY(TB_MEM_GROW(table->mem, table->stack, table->capacity, table->count));
  TB_TRY(to_stack_store_keep(&table->user, frame, n, &stack, &cost));
  *out_index = (uint32_t)table->count;
  put_place(table->place, table->places, to_callstack_hash(stack), *out_index);
  table->stack[table->count++] = stack;
  table->bytes += cost;
  return TB_OK;
}

/* Finds or adds a stack with its texts. */
static __attribute__((noinline)) tb_rc keep(struct to_stack_table *table,
                                            const struct to_generation *gen, uint64_t id,
                                            const struct to_callstack *other,
                                            struct wanted_stack *wanted, uint32_t *out_index) {
  struct to_frame frame[TO_STACK_FRAMES_MAX];

  if (read_frames(gen, id, other, frame) != wanted->len) return TB_OK;
  if (wanted->needs_text && find_frames(table, frame, wanted)) {
    hash_wanted(table, wanted);
    uint32_t index = find_index(table, wanted);
    if (index != 0) {
      *out_index = index;
      return TB_OK;
    }
  }
  return table_is_full(table) ? TB_OK : add_stack(table, frame, wanted->len, out_index);
}

/* Names frames that the generation or the other table knows, and an earlier generation did not. */
static __attribute__((noinline)) tb_rc name(struct to_stack_table *table,
                                            const struct to_generation *gen, uint64_t id,
                                            const struct to_callstack *other, uint32_t index) {
  struct to_frame frame[TO_STACK_FRAMES_MAX];
  size_t n = read_frames(gen, id, other, frame);

  return to_stack_store_name(&table->user, table->stack[index], frame, n, &table->named);
}

/* Finds or adds the stack of the wanted counters; *out_index: TO_STACK_OTHER before, and after that if it has no room. */
static tb_rc find_or_add(struct to_stack_table *table, const struct to_generation *gen, uint64_t id,
                         const struct to_callstack *other, struct wanted_stack *wanted,
                         uint32_t *out_index) {
  uint32_t index = 0;

  TB_TRY(grow_places(table));
  for (size_t i = 0; i < wanted->len; i++) wanted->needs_text |= wanted->pcs[i] == 0;
  if (!wanted->needs_text) {
    hash_wanted(table, wanted);
    index = find_index(table, wanted);
  }
  if (index == 0) return keep(table, gen, id, other, wanted, out_index);
  *out_index = index;
  if (TB_LIKELY(!to_stack_is_unnamed(table->stack[index]))) return TB_OK;
  return name(table, gen, id, other, index);
}

/* ---- a full table ---- */

static uint64_t *begin_place(const struct to_stack_table *table, uint64_t hash, uint64_t *out_bit) {
  uint64_t at = to_stack_mix(hash, 0) >> (64 - table->begins_bits);

  *out_bit = UINT64_C(1) << at % 64;
  return &table->begins[at / 64];
}

static tb_rc note_begins(struct to_stack_table *table) {
  unsigned bits = 10;
  uint64_t bit;

  while ((size_t)1 << bits < 32 * table->count) bits++;
  TB_TRY(tb_mem_alloc(table->mem, (size_t)1 << bits >> 3, &table->begins));
  table->begins_bits = bits;
  for (size_t i = 0; i < table->count; i++) {
    const struct to_callstack *stack = table->stack[i];
    uint64_t hash = to_stack_mix(table->user.store->seed, stack->len);
    for (size_t n = 0; n < stack->len && n < TO_STACK_BEGIN; n++)
      hash = to_stack_mix(hash, stack->frames[n]->pc);
    *begin_place(table, hash, &bit) |= bit;
  }
  return TB_OK;
}

/* Returns true if no stored stack begins like this one: in a full table most are unknown, and need not be read to their end. */
static tb_rc is_unknown(struct to_stack_table *table, const struct to_generation *gen, uint64_t id,
                        bool *out) {
  uint64_t hash = to_stack_mix(table->user.store->seed, to_stack_length(gen, id));
  uint64_t pcs[TO_STACK_BEGIN], bit;

  if (table->begins == NULL) TB_TRY(note_begins(table));
  size_t n = to_stack_pcs(gen, id, pcs, TO_STACK_BEGIN);
  for (size_t i = 0; i < n; i++) hash = to_stack_mix(hash, pcs[i]);
  *out = n > 0 && (*begin_place(table, hash, &bit) & bit) == 0;
  return TB_OK;
}

static __attribute__((noinline)) tb_rc identify(struct to_stack_table *table,
                                                const struct to_generation *gen, uint64_t id,
                                                uint32_t *out_index) {
  struct wanted_stack wanted = { .len = 0 };

  wanted.len = to_stack_pcs(gen, id, wanted.pcs, TO_STACK_FRAMES_MAX);
  *out_index = wanted.len == 0 ? TO_STACK_EMPTY : TO_STACK_OTHER;
  return wanted.len == 0 ? TB_OK : find_or_add(table, gen, id, NULL, &wanted, out_index);
}

tb_rc to_stack_table_find(struct to_stack_table *table, const struct to_generation *gen,
                          uint64_t id, uint32_t *out_index) {
  uint64_t *known = tb_map_find(&table->by_id, id);

  if (known != NULL) {
    *out_index = (uint32_t)*known;
  } else {
    bool unknown = false;
    *out_index = TO_STACK_OTHER;
    TB_TRY(open_table(table));
    if (table_is_full(table)) TB_TRY(is_unknown(table, gen, id, &unknown));
    if (!unknown) TB_TRY(identify(table, gen, id, out_index));
    TB_TRY(tb_map_put(&table->by_id, id, &known, NULL));
    *known = *out_index;
  }
  table->user.store->recent[id % TO_STACK_RECENT] =
      (struct to_stack_recent){ .id = id, .turn = table->turn, .index = *out_index };
  return TB_OK;
}

tb_rc to_stack_table_copy(struct to_stack_table *table, const struct to_callstack *stack,
                          uint32_t *out_index) {
  struct wanted_stack wanted = { .len = 0 };

  *out_index = stack == NULL || table_is_full(table) ? TO_STACK_OTHER : TO_STACK_EMPTY;
  if (*out_index == TO_STACK_OTHER || stack->len == 0) return TB_OK;
  *out_index = TO_STACK_OTHER;
  TB_TRY(open_table(table));
  for (; wanted.len < stack->len && wanted.len < TO_STACK_FRAMES_MAX; wanted.len++)
    wanted.pcs[wanted.len] = stack->frames[wanted.len]->pc;
  return find_or_add(table, NULL, 0, stack, &wanted, out_index);
}

const struct to_callstack *to_stack_table_stack(const struct to_stack_table *table,
                                                uint32_t index) {
  static const struct to_callstack none = { 0 };

  if (index == TO_STACK_EMPTY) return &none;
  return index == TO_STACK_OTHER ? NULL : table->stack[index];
}
