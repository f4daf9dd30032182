/* SPDX-License-Identifier: Apache-2.0 */
/* Text and frames are interned, so that equal ones have equal addresses; a stack is an array of frame addresses. Maps lead
 * from a hash to an address, and every hit is compared: a collision costs a probe, never a mix-up. Hashes cannot be
 * forged, as each map has a random seed.
 *
 * A stack of an earlier generation is recognised by its program counters alone, which the generation provides. Frames
 * without a counter (a C program may write such) are compared by their text. */
#include "online/spans/stacks/table.h"
#include "base/grow.h"

#include <string.h>

enum {
  ARENA_CHUNK_BYTES = 8 << 10,
  STACK_BYTES_MEAN = 1024,
  FRAMES_MAX = 128,
};

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ (hash >> 29);
}

static uint64_t mix_text(uint64_t hash, struct to_string text) {
  uint64_t word = 0;

  for (; text.len >= sizeof(word); text.data += sizeof(word), text.len -= sizeof(word)) {
    memcpy(&word, text.data, sizeof(word));
    hash = mix(hash, word);
  }
  word = 0;
  if (text.len > 0) memcpy(&word, text.data, text.len);
  return mix(mix(hash, word), text.len);
}

static size_t begins_bytes(const struct to_stack_table *table) {
  return table->begins == NULL ? 0 : (size_t)1 << table->begins_bits >> 3;
}

void to_stack_table_init(struct to_stack_table *table, struct tb_mem *mem, size_t stacks_max) {
  uint64_t seed = tb_seed();

  *table = (struct to_stack_table){ .mem = mem, .epoch = 1, .stacks_max = stacks_max };
  tb_arena_init(&table->arena, mem, ARENA_CHUNK_BYTES);
  tb_map_init(&table->by_identity, mem, seed);
  tb_map_init(&table->frames, mem, seed);
  tb_map_init(&table->texts, mem, seed);
  tb_map_init(&table->by_id, mem, seed);
}

void to_stack_table_fini(struct to_stack_table *table) {
  tb_arena_fini(&table->arena);
  tb_map_fini(&table->by_identity);
  tb_map_fini(&table->frames);
  tb_map_fini(&table->texts);
  tb_map_fini(&table->by_id);
  if (table->mem != NULL) {
    tb_mem_free(table->mem, table->stack, table->capacity * sizeof(*table->stack));
    tb_mem_free(table->mem, table->begins, begins_bytes(table));
  }
  *table = (struct to_stack_table){ 0 };
}

void to_stack_table_generation(struct to_stack_table *table) {
  tb_map_clear(&table->by_id);
  table->epoch++;
}

typedef bool same_fn(const void *kept, const void *wanted);

/* Finds the place of what equals wanted. Otherwise the place is an empty one (value 0) if add is true, or else NULL. A
 * place that a failure left empty is reused. */
static tb_rc intern(struct tb_map *map, uint64_t key, same_fn *same, const void *wanted, bool add,
                    uint64_t **out_place) {
  for (;; key = mix(key, 1)) {
    *out_place = tb_map_find(map, key);
    if (*out_place == NULL) return add ? tb_map_put(map, key, out_place, NULL) : TB_OK;
    if (**out_place == 0 || same((const void *)(uintptr_t) * *out_place, wanted)) return TB_OK;
  }
}

static bool same_text(const void *kept, const void *wanted) {
  const struct to_string *a = kept, *b = wanted;
  return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static tb_rc keep_text(struct to_stack_table *table, struct to_string *text) {
  uint64_t *place;
  struct to_string *kept;

  TB_TRY(intern(&table->texts, mix_text(table->texts.seed, *text), same_text, text, true, &place));
  if (*place == 0) {
    TB_TRY(tb_arena_alloc(&table->arena, sizeof(struct to_string) + text->len + 1, &kept));
    *kept = (struct to_string){ .data = (const char *)(kept + 1), .len = text->len };
    if (text->len > 0) memcpy(kept + 1, text->data, text->len);
    ((char *)(kept + 1))[text->len] = '\0';
    *place = (uintptr_t)kept;
  }
  *text = *(const struct to_string *)(uintptr_t)*place;
  return TB_OK;
}

static bool same_frame(const void *kept, const void *wanted) {
  const struct to_frame *a = kept, *b = wanted;
  return a->pc == b->pc && a->line == b->line && same_text(&a->function, &b->function) &&
         same_text(&a->file, &b->file);
}

/* Finds or copies a frame. *out_frame is NULL if the frame is not in the table and add is false. */
static tb_rc keep_frame(struct to_stack_table *table, struct to_frame frame, bool add,
                        const struct to_frame **out_frame) {
  uint64_t key = mix(mix(table->frames.seed, frame.pc), frame.line);
  uint64_t *place;
  void *block;

  if (frame.pc == 0) key = mix_text(mix_text(key, frame.function), frame.file);
  TB_TRY(intern(&table->frames, key, same_frame, &frame, add, &place));
  if (place == NULL || (*place == 0 && !add)) {
    *out_frame = NULL;
    return TB_OK;
  }
  if (*place == 0) {
    TB_TRY(keep_text(table, &frame.function));
    TB_TRY(keep_text(table, &frame.file));
    TB_TRY(tb_arena_alloc(&table->arena, sizeof(frame), &block));
    memcpy(block, &frame, sizeof(frame));
    *place = (uintptr_t)block;
  }
  *out_frame = (const struct to_frame *)(uintptr_t)*place;
  return TB_OK;
}

/* A value of by_identity: a stack and its index. */
struct kept_stack {
  struct to_callstack stack;
  uint32_t index;
  bool is_unnamed; /* a frame is unnamed */
};

/* Returns true for code of a C program whose name has not been looked up yet: "module+0x1f". */
static bool is_unnamed(const struct to_frame *frame) {
  return frame->line == 0 && memmem(frame->function.data, frame->function.len, "+0x", 3) != NULL;
}

static bool has_unnamed(const struct to_callstack *stack) {
  for (size_t i = 0; i < stack->len; i++)
    if (is_unnamed(stack->frames[i])) return true;
  return false;
}

/* The own frame is looked up once, when all frames have their names. */
static void note_names(struct kept_stack *kept) {
  kept->is_unnamed = has_unnamed(&kept->stack);
  if (!kept->is_unnamed && kept->stack.len > 0)
    kept->stack.own = to_callstack_find_own(&kept->stack) + 1;
}

/* Gives an unnamed frame the name that a later generation has, in place, for all stacks with this frame and for entry functions. */
static tb_rc name_frame(struct to_stack_table *table, const struct to_frame *kept,
                        struct to_frame frame) {
  struct to_frame *old = (struct to_frame *)(uintptr_t)kept;

  if (old->pc == 0 || old->pc != frame.pc || !is_unnamed(old) || is_unnamed(&frame)) return TB_OK;
  TB_TRY(keep_text(table, &frame.function));
  TB_TRY(keep_text(table, &frame.file));
  *old = frame;
  table->named++;
  return TB_OK;
}

/* Names frames that the generation knows and an earlier one did not. */
static tb_rc name_frames(struct to_stack_table *table, const struct to_generation *gen, uint64_t id,
                         struct kept_stack *kept) {
  struct to_stack_iter it;
  struct to_frame frame;

  if (!to_generation_stack_own(gen, id, &it)) return TB_OK;
  for (size_t i = 0; i < kept->stack.len && to_stack_next(&it, &frame); i++)
    TB_TRY(name_frame(table, kept->stack.frames[i], frame));
  note_names(kept);
  return TB_OK;
}

/* A stack to look up: frames are only filled in if a program counter is missing. */
struct wanted_stack {
  size_t len;
  uint64_t pcs[FRAMES_MAX];
  const struct to_frame *frames[FRAMES_MAX];
  bool has_frames;
};

static bool same_stack(const void *kept, const void *wanted) {
  const struct to_callstack *a = &((const struct kept_stack *)kept)->stack;
  const struct wanted_stack *b = wanted;

  if (a->len != b->len) return false;
  for (size_t i = 0; i < a->len; i++)
    if (b->has_frames ? a->frames[i] != b->frames[i] : a->frames[i]->pc != b->pcs[i]) return false;
  return true;
}

static bool table_is_full(const struct to_stack_table *table) {
  return table->count > TO_STACK_OTHER + table->stacks_max ||
         table->arena.bytes / STACK_BYTES_MEAN > table->stacks_max;
}

static tb_rc add_stack(struct to_stack_table *table, const struct to_frame *const *frames, size_t n,
                       const struct kept_stack **out) {
  struct kept_stack *kept;

  TB_TRY(TB_MEM_GROW(table->mem, table->stack, table->capacity, table->count));
  TB_TRY(tb_arena_alloc(&table->arena, sizeof(struct kept_stack) + n * sizeof(*frames), &kept));
  if (n > 0) memcpy(kept + 1, frames, n * sizeof(*frames));
  kept->stack = (struct to_callstack){ .len = n, .frames = (void *)(kept + 1) };
  kept->index = (uint32_t)table->count;
  note_names(kept);
  table->stack[table->count++] = &kept->stack;
  *out = kept;
  return TB_OK;
}

/* Adds the two stacks that always exist. */
static tb_rc add_first_stacks(struct to_stack_table *table) {
  const struct kept_stack *kept;

  while (table->count <= TO_STACK_OTHER) TB_TRY(add_stack(table, NULL, 0, &kept));
  return TB_OK;
}

/* Finds the table's copies of the frames. *out_found: all were found or, with add, added. */
static tb_rc find_frames(struct to_stack_table *table, const struct to_generation *gen, uint64_t id,
                         bool add, struct wanted_stack *wanted, bool *out_found) {
  struct to_stack_iter it;
  struct to_frame frame;

  *out_found = to_generation_stack_own(gen, id, &it);
  for (size_t i = 0; i < wanted->len && *out_found; i++) {
    *out_found = to_stack_next(&it, &frame);
    if (!*out_found) break;
    TB_TRY(keep_frame(table, frame, add, &wanted->frames[i]));
    *out_found = wanted->frames[i] != NULL;
  }
  wanted->has_frames = *out_found;
  return TB_OK;
}

/* ---- a full table ---- */

static uint64_t *begin_place(const struct to_stack_table *table, uint64_t hash, uint64_t *out_bit) {
  uint64_t at = mix(hash, 0) >> (64 - table->begins_bits);

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
    uint64_t hash = mix(table->by_identity.seed, stack->len);
    for (size_t n = 0; n < stack->len && n < TO_STACK_BEGIN; n++)
      hash = mix(hash, stack->frames[n]->pc);
    *begin_place(table, hash, &bit) |= bit;
  }
  return TB_OK;
}

/* Returns true if no stored stack begins like this one: in a full table most are unknown, and need not be read to their end. */
static tb_rc is_unknown(struct to_stack_table *table, const struct to_generation *gen, uint64_t id,
                        bool *out) {
  uint64_t hash = mix(table->by_identity.seed, to_stack_length(gen, id));
  uint64_t pcs[TO_STACK_BEGIN], bit;

  if (table->begins == NULL) TB_TRY(note_begins(table));
  size_t n = to_stack_pcs(gen, id, pcs, TO_STACK_BEGIN);
  for (size_t i = 0; i < n; i++) hash = mix(hash, pcs[i]);
  *out = n > 0 && (*begin_place(table, hash, &bit) & bit) == 0;
  return TB_OK;
}

static __attribute__((noinline)) tb_rc identify(struct to_stack_table *table,
                                                const struct to_generation *gen, uint64_t id,
                                                uint32_t *out_index) {
  struct wanted_stack wanted = { .len = 0 };
  bool add = !table_is_full(table); /* full: find only */
  bool need_text = false, found = true;
  uint64_t hash = table->by_identity.seed;
  uint64_t *place;

  wanted.len = to_stack_pcs(gen, id, wanted.pcs, FRAMES_MAX);
  *out_index = wanted.len == 0 ? TO_STACK_EMPTY : TO_STACK_OTHER;
  if (wanted.len == 0) return TB_OK;
  for (size_t i = 0; i < wanted.len; i++) {
    hash = mix(hash, wanted.pcs[i]);
    need_text |= wanted.pcs[i] == 0;
  }
  if (need_text) {
    TB_TRY(find_frames(table, gen, id, add, &wanted, &found));
    for (size_t i = 0; i < wanted.len && found; i++) hash = mix(hash, (uintptr_t)wanted.frames[i]);
  }
  if (!found) return TB_OK;
  TB_TRY(intern(&table->by_identity, hash, same_stack, &wanted, add, &place));
  if (place == NULL || (*place == 0 && !add)) return TB_OK;
  if (*place == 0) {
    const struct kept_stack *kept;
    TB_TRY(find_frames(table, gen, id, true, &wanted, &found));
    if (!found) return TB_OK;
    TB_TRY(add_stack(table, wanted.frames, wanted.len, &kept));
    *place = (uintptr_t)kept;
  }
  struct kept_stack *kept = (struct kept_stack *)(uintptr_t)*place;
  *out_index = kept->index;
  return TB_UNLIKELY(kept->is_unnamed) ? name_frames(table, gen, id, kept) : TB_OK;
}

tb_rc to_stack_table_find(struct to_stack_table *table, const struct to_generation *gen,
                          uint64_t id, uint32_t *out_index) {
  struct to_stack_recent *recent = &table->recent[id % TO_STACK_RECENT];
  uint64_t *known = tb_map_find(&table->by_id, id);

  if (known != NULL) {
    *out_index = (uint32_t)*known;
  } else {
    bool unknown = false;
    *out_index = TO_STACK_OTHER;
    TB_TRY(add_first_stacks(table));
    if (table_is_full(table)) TB_TRY(is_unknown(table, gen, id, &unknown));
    if (!unknown) TB_TRY(identify(table, gen, id, out_index));
    TB_TRY(tb_map_put(&table->by_id, id, &known, NULL));
    *known = *out_index;
  }
  *recent = (struct to_stack_recent){ .id = id, .epoch = table->epoch, .index = *out_index };
  return TB_OK;
}

const struct to_callstack *to_stack_table_stack(const struct to_stack_table *table,
                                                uint32_t index) {
  static const struct to_callstack none = { 0 };

  if (index == TO_STACK_EMPTY) return &none;
  return index == TO_STACK_OTHER ? NULL : table->stack[index];
}

/* ---- stacks of another table ---- */

static tb_rc identify_copy(struct to_stack_table *table, const struct to_callstack *stack,
                           struct kept_stack **out) {
  struct wanted_stack wanted = { .len = stack->len < FRAMES_MAX ? stack->len : FRAMES_MAX };
  uint64_t hash = table->by_identity.seed, *place;
  const struct kept_stack *kept;

  for (size_t i = 0; i < wanted.len; i++) {
    wanted.pcs[i] = stack->frames[i]->pc;
    hash = mix(hash, wanted.pcs[i]);
    wanted.has_frames |= wanted.pcs[i] == 0;
  }
  for (size_t i = 0; i < wanted.len; i++)
    TB_TRY(keep_frame(table, *stack->frames[i], true, &wanted.frames[i]));
  for (size_t i = 0; i < wanted.len && wanted.has_frames; i++)
    hash = mix(hash, (uintptr_t)wanted.frames[i]);
  TB_TRY(intern(&table->by_identity, hash, same_stack, &wanted, true, &place));
  if (*place == 0) {
    TB_TRY(add_stack(table, wanted.frames, wanted.len, &kept));
    *place = (uintptr_t)kept;
  }
  *out = (struct kept_stack *)(uintptr_t)*place;
  return TB_OK;
}

tb_rc to_stack_table_copy(struct to_stack_table *table, const struct to_callstack *stack,
                          uint32_t *out_index) {
  struct kept_stack *kept;

  *out_index = stack == NULL || table_is_full(table) ? TO_STACK_OTHER : TO_STACK_EMPTY;
  if (*out_index == TO_STACK_OTHER || stack->len == 0) return TB_OK;
  TB_TRY(add_first_stacks(table));
  TB_TRY(identify_copy(table, stack, &kept));
  for (size_t i = 0; kept->is_unnamed && i < kept->stack.len; i++)
    TB_TRY(name_frame(table, kept->stack.frames[i], *stack->frames[i]));
  if (kept->is_unnamed) note_names(kept);
  *out_index = kept->index;
  return TB_OK;
}
