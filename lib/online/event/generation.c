/* SPDX-License-Identifier: Apache-2.0 */
/* Frames are not unpacked, because most generations are ordered without a look at any stack. The first
 * query builds a map by PC: as in Go's reader, a frame's function, file and line are those of the
 * generation's first frame with this PC, even if a later stack differs. */
#include <string.h>

#include "base/hash.h"
#include "online/event/tables.h"
#include "wire/sections.h"

enum {
  /* Three batches, not four: allocators return larger blocks to the system, and each reader would map them again. */
  BYTES_CHUNK = 3 * (TW_BATCH_BYTES_MAX + 256),
  BATCHES_CHUNK = 8 << 10,
  EXTRA_CHUNK = 4 << 10
};

void to__generation_init(struct to_generation *gen, struct tb_mem *mem) {
  uint64_t seed = tb_seed();

  *gen = (struct to_generation){ .mem = mem, .seed = seed };
  tb_arena_init(&gen->bytes_arena, mem, BYTES_CHUNK);
  tb_arena_init(&gen->batches, mem, BATCHES_CHUNK);
  tb_arena_init(&gen->extra, mem, EXTRA_CHUNK);
  tb_map_init(&gen->place_by_thread, mem, seed);
  tb_map_init(&gen->extra_by_hash, mem, seed);
  tb_map_init(&gen->places_by_stack, mem, seed);
  tb_map_init(&gen->frame_by_pc, mem, seed);
  to__ids_init(&gen->string_ids, mem);
  to__ids_init(&gen->stack_ids, mem);
}

static void vec_fini(struct tb_mem *mem, struct to_vec *vec, size_t item_bytes) {
  tb_mem_free(mem, vec->items, vec->cap * item_bytes);
}

void to__generation_fini(struct to_generation *gen) {
  if (gen->mem == NULL) return;
  tb_arena_fini(&gen->bytes_arena);
  tb_arena_fini(&gen->batches);
  tb_arena_fini(&gen->extra);
  tb_map_fini(&gen->place_by_thread);
  tb_map_fini(&gen->extra_by_hash);
  tb_map_fini(&gen->places_by_stack);
  tb_map_fini(&gen->frame_by_pc);
  to__ids_fini(&gen->string_ids);
  to__ids_fini(&gen->stack_ids);
  vec_fini(gen->mem, &gen->threads, sizeof(struct to_thread_batches));
  vec_fini(gen->mem, &gen->strings, sizeof(struct to_string));
  vec_fini(gen->mem, &gen->stacks, sizeof(struct to_stack));
  vec_fini(gen->mem, &gen->samples, sizeof(struct to_sample));
  vec_fini(gen->mem, &gen->sample_times, sizeof(struct to_heap_entry));
  vec_fini(gen->mem, &gen->experimental, sizeof(struct to_experimental));
  vec_fini(gen->mem, &gen->extra_strings, sizeof(struct to_string));
  tb_mem_free(gen->mem, gen->experiments, sizeof *gen->experiments);
  *gen = (struct to_generation){ 0 };
}

void to__generation_clear(struct to_generation *gen) {
  gen->number = gen->time_min = gen->bytes = 0;
  gen->ns_per_tick = 0;
  gen->has_clock = gen->frames_known = false;
  gen->frames_rc = TB_OK;
  gen->frames_next = 0;
  gen->stack_string_max = 0;
  tb_arena_reset(&gen->bytes_arena);
  tb_arena_reset(&gen->batches);
  tb_arena_reset(&gen->extra);
  tb_map_clear(&gen->place_by_thread);
  tb_map_clear(&gen->extra_by_hash);
  tb_map_clear(&gen->places_by_stack);
  tb_map_clear(&gen->frame_by_pc);
  to__ids_clear(&gen->string_ids);
  to__ids_clear(&gen->stack_ids);
  gen->threads.count = gen->strings.count = gen->stacks.count = 0;
  gen->samples.count = gen->sample_times.count = 0;
  gen->experimental.count = gen->extra_strings.count = 0;
  if (gen->experiments != NULL) tw_experiments_init(gen->experiments);
}

/* ---- the pool ---- */

static size_t vec_held(const struct to_vec *vec, size_t item_bytes) {
  return vec->cap * item_bytes;
}

static size_t ids_held(const struct to_ids *ids) {
  return ids->dense_len * sizeof *ids->dense + tb_map_held(&ids->sparse);
}

/* Returns how much is charged to its mem. */
static size_t held(const struct to_generation *gen) {
  return tb_arena_held(&gen->bytes_arena) + tb_arena_held(&gen->batches) +
         tb_arena_held(&gen->extra) + tb_map_held(&gen->place_by_thread) +
         tb_map_held(&gen->extra_by_hash) + tb_map_held(&gen->places_by_stack) +
         tb_map_held(&gen->frame_by_pc) + ids_held(&gen->string_ids) + ids_held(&gen->stack_ids) +
         vec_held(&gen->threads, sizeof(struct to_thread_batches)) +
         vec_held(&gen->strings, sizeof(struct to_string)) +
         vec_held(&gen->stacks, sizeof(struct to_stack)) +
         vec_held(&gen->samples, sizeof(struct to_sample)) +
         vec_held(&gen->sample_times, sizeof(struct to_heap_entry)) +
         vec_held(&gen->experimental, sizeof(struct to_experimental)) +
         vec_held(&gen->extra_strings, sizeof(struct to_string)) +
         (gen->experiments != NULL ? sizeof *gen->experiments : 0);
}

static void set_mem(struct to_generation *gen, struct tb_mem *mem) {
  gen->mem = gen->bytes_arena.mem = gen->batches.mem = gen->extra.mem = mem;
  gen->place_by_thread.mem = gen->extra_by_hash.mem = gen->places_by_stack.mem = mem;
  gen->frame_by_pc.mem = mem;
  gen->string_ids.mem = gen->string_ids.sparse.mem = mem;
  gen->stack_ids.mem = gen->stack_ids.sparse.mem = mem;
}

void to_generation_pool_init(struct to_generation_pool *pool, tb_mem_resize_fn *resize, void *self,
                             size_t bytes_max) {
  *pool = (struct to_generation_pool){ .n = 0 };
  tb_mem_init(&pool->mem, resize, self, bytes_max);
}

void to_generation_pool_fini(struct to_generation_pool *pool) {
  while (pool->n > 0) to__generation_fini(&pool->generation[--pool->n]);
}

void to__generation_take(struct to_generation *gen, struct to_generation_pool *pool,
                         struct tb_mem *mem) {
  struct to_generation *last = pool->n > 0 ? &pool->generation[pool->n - 1] : NULL;

  if (last == NULL || tb_mem_pass(&pool->mem, mem, held(last)) != TB_OK) {
    to__generation_init(gen, mem);
    return;
  }
  *gen = *last;
  set_mem(gen, mem);
  pool->n--;
}

void to__generation_give(struct to_generation *gen, struct to_generation_pool *pool) {
  to__generation_clear(gen);
  if (pool->n == TO_GENERATIONS_KEPT || tb_mem_pass(gen->mem, &pool->mem, held(gen)) != TB_OK) {
    to__generation_fini(gen);
    return;
  }
  set_mem(gen, &pool->mem);
  pool->generation[pool->n++] = *gen;
  *gen = (struct to_generation){ 0 };
}

tb_rc to__vec_add(struct tb_mem *mem, struct to_vec *vec, size_t item_bytes, void **out) {
  if (vec->count == vec->cap) {
    size_t cap = vec->cap == 0 ? 16 : vec->cap * 2;
    if (cap >= UINT32_MAX) return TB_BUDGET; /* positions are 32 bits wide */
    TB_TRY(tb_mem_resize(mem, &vec->items, vec->cap * item_bytes, cap * item_bytes));
    vec->cap = cap;
  }
  *out = (char *)vec->items + vec->count++ * item_bytes;
  return TB_OK;
}

uint64_t to_generation_number(const struct to_generation *gen) {
  return gen->number;
}
unsigned to_generation_version(const struct to_generation *gen) {
  return gen->version;
}

to_ns to_generation_start(const struct to_generation *gen) {
  return to__ticks_ns(gen->ns_per_tick, gen->time_min);
}

bool to_generation_string(const struct to_generation *gen, uint64_t id, struct to_string *out) {
  const struct to_string *strings = gen->strings.items;
  uint32_t position;

  *out = (struct to_string){ "", 0 };
  if (id == 0) return true;
  position = to__ids_find(&gen->string_ids, id);
  if (position == TO_IDS_NONE) return false;
  *out = strings[position];
  return true;
}

struct to_string to_generation_extra_string(const struct to_generation *gen, uint64_t id) {
  const struct to_string *strings = gen->extra_strings.items;

  if (id == 0 || id > gen->extra_strings.count) return (struct to_string){ "", 0 };
  return strings[id - 1];
}

enum { HASH_START = 0x345 };

tb_rc to__extra_string(struct to_generation *gen, struct to_string text, uint64_t *out_id) {
  uint64_t *found;
  bool fresh;
  void *copy, *slot;

  *out_id = 0;
  if (text.len == 0) return TB_OK;
  /* Equal texts share an id, unless hashes collide: then the later text is stored again each time. */
  TB_TRY(tb_map_put(&gen->extra_by_hash, tb_hash(gen->seed, text.data, text.len), &found, &fresh));
  if (!fresh) {
    struct to_string have = to_generation_extra_string(gen, *found);
    if (have.len == text.len && memcmp(have.data, text.data, text.len) == 0) {
      *out_id = *found;
      return TB_OK;
    }
  }
  TB_TRY(tb_arena_copy(&gen->extra, text.data, text.len, &copy));
  TB_TRY(to__vec_add(gen->mem, &gen->extra_strings, sizeof(struct to_string), &slot));
  *(struct to_string *)slot = (struct to_string){ copy, text.len };
  *out_id = *found = gen->extra_strings.count;
  return TB_OK;
}

/* Adds a stack's frames to the map; the first frame of a PC stays. */
static tb_rc make_frames_of(struct to_generation *gen, const struct to_stack *stack) {
  const unsigned char *pos = stack->frames;

  for (uint32_t n = 0; n < stack->nframes; n++) {
    const unsigned char *start = pos;
    struct tw_frame frame;
    uint64_t *place;
    bool fresh;
    pos = tw_frame_read(pos, &frame);
    TB_TRY(tb_map_put(&gen->frame_by_pc, frame.pc, &place, &fresh));
    if (fresh) *place = (uintptr_t)start;
  }
  return TB_OK;
}

tb_rc to__frames_make_some(struct to_generation *gen, size_t frames) {
  const struct to_stack *stacks = gen->stacks.items;

  for (size_t made = 0; !gen->frames_known && gen->frames_rc == TB_OK;) {
    if (gen->frames_next == gen->stacks.count) {
      gen->frames_known = true;
      break;
    }
    if (made >= frames) return TB_AGAIN;
    made += stacks[gen->frames_next].nframes;
    gen->frames_rc = make_frames_of(gen, &stacks[gen->frames_next++]);
  }
  return gen->frames_rc;
}

tb_rc to__frames_make(struct to_generation *gen) {
  return to__frames_make_some(gen, SIZE_MAX);
}

static struct to_stack *find_stack(const struct to_generation *gen, uint64_t id) {
  uint32_t position = id == 0 ? TO_IDS_NONE : to__ids_find(&gen->stack_ids, id);

  return position == TO_IDS_NONE ? NULL : (struct to_stack *)gen->stacks.items + position;
}

/* Builds the map by PC although the generation is const: the map is only a cache. */
static tb_rc know_frames(const struct to_generation *gen) {
  return to__frames_make((struct to_generation *)(uintptr_t)gen);
}

bool to_generation_stack_own(const struct to_generation *gen, uint64_t id,
                             struct to_stack_iter *out) {
  const struct to_stack *stack = find_stack(gen, id);

  *out = (struct to_stack_iter){ .gen = gen, .own = true };
  if (id == 0) return true;
  if (stack == NULL) return false;
  out->pos = stack->frames;
  out->left = stack->nframes;
  return true;
}

bool to_generation_stack(const struct to_generation *gen, uint64_t id, struct to_stack_iter *out) {
  bool found = to_generation_stack_own(gen, id, out);

  out->own = false;
  return found && (id == 0 || know_frames(gen) == TB_OK);
}

uint64_t to_stack_length(const struct to_generation *gen, uint64_t id) {
  const struct to_stack *stack = find_stack(gen, id);

  return stack == NULL ? 0 : stack->nframes;
}

bool to_stack_next(struct to_stack_iter *it, struct to_frame *out) {
  struct tw_frame frame;

  if (it->left == 0) return false;
  it->left--;
  it->pos = tw_frame_read(it->pos, &frame);
  const uint64_t *first = it->own ? NULL : tb_map_find(&it->gen->frame_by_pc, frame.pc);
  if (first != NULL) tw_frame_read((const unsigned char *)(uintptr_t)*first, &frame);
  out->pc = frame.pc;
  out->line = frame.line;
  (void)to_generation_string(it->gen, frame.function, &out->function);
  (void)to_generation_string(it->gen, frame.file, &out->file);
  return true;
}

static tb_rc find_places(struct to_generation *gen, const struct to_stack *stack,
                         const uint16_t **out) {
  uint64_t *place;
  bool fresh;
  uint16_t *places;

  TB_TRY(tb_map_put(&gen->places_by_stack, stack->id, &place, &fresh));
  if (*place == 0) { /* fresh, or memory could not be allocated the last time */
    TB_TRY(tb_arena_alloc(&gen->extra, stack->nframes * sizeof **out, &places));
    const unsigned char *pos = stack->frames;
    for (uint32_t i = 0; i < stack->nframes; i++) {
      struct tw_frame frame;
      places[i] = (uint16_t)(pos - stack->frames); /* 128 frames of 40 bytes at most */
      pos = tw_frame_read(pos, &frame);
    }
    *place = (uintptr_t)places;
  }
  *out = (const uint16_t *)(uintptr_t)*place;
  return TB_OK;
}

bool to_stack_at(const struct to_generation *gen, uint64_t id, uint64_t depth,
                 struct to_frame *out) {
  const struct to_stack *stack = find_stack(gen, id);
  const uint16_t *places;

  if (stack == NULL || depth >= stack->nframes || know_frames(gen) != TB_OK) return false;
  /* A cache like the map by PC, so const is cast away. */
  if (find_places((struct to_generation *)(uintptr_t)gen, stack, &places) != TB_OK) return false;
  struct to_stack_iter it = { gen, stack->frames + places[depth], 1, false };
  return to_stack_next(&it, out);
}

size_t to_stack_pcs(const struct to_generation *gen, uint64_t id, uint64_t *pcs, size_t max) {
  const struct to_stack *stack = find_stack(gen, id);

  if (stack == NULL) return 0;
  size_t n = stack->nframes < max ? stack->nframes : max;
  tw_frame_pcs(stack->frames, stack->nframes, n, pcs);
  return n;
}

uint64_t to_stack_hash(const struct to_generation *gen, uint64_t id) {
  struct to_stack *stack = find_stack(gen, id);
  struct to_stack_iter it;
  struct to_frame frame;
  uint64_t hash = HASH_START;

  if (stack == NULL || !to_generation_stack(gen, id, &it)) return 0;
  if (stack->hash != 0) return stack->hash;
  while (to_stack_next(&it, &frame)) {
    uint64_t lengths[] = { frame.line, frame.function.len, frame.file.len };
    hash = tb_hash(hash, (const char *)lengths, sizeof lengths);
    hash = tb_hash(hash, frame.function.data, frame.function.len);
    hash = tb_hash(hash, frame.file.data, frame.file.len);
  }
  hash ^= hash >> 32;
  stack->hash = hash == 0 ? 1 : hash; /* 0 is the empty stack's */
  return stack->hash;
}

bool to_generation_clock(const struct to_generation *gen, struct to_clock *out) {
  int64_t sec = (int64_t)gen->clock[2], nsec = (int64_t)gen->clock[3];

  if (!gen->has_clock) return false;
  /* Nanoseconds may be out of range or negative: carry whole seconds. */
  sec = (int64_t)((uint64_t)sec + (uint64_t)(nsec / 1000000000));
  nsec %= 1000000000;
  if (nsec < 0) {
    nsec += 1000000000;
    sec = (int64_t)((uint64_t)sec - 1);
  }
  *out = (struct to_clock){ .trace_ns = to__ticks_ns(gen->ns_per_tick, gen->clock[0]),
                            .mono_ns = gen->clock[1],
                            .wall_s = sec,
                            .wall_ns = nsec };
  return true;
}

size_t to_generation_experimental(const struct to_generation *gen,
                                  const struct to_experimental **out) {
  *out = gen->experimental.items;
  return gen->experimental.count;
}

const struct tw_spec *to_generation_spec(const struct to_generation *gen, uint8_t type) {
  const struct tw_own_event *own = gen == NULL ? NULL : tw_own_event(gen->experiments, type);

  return own == NULL ? tw_spec(type) : &own->spec;
}

unsigned to_generation_args(const struct to_generation *gen, uint8_t type,
                            enum tw_arg_type out[4]) {
  const struct tw_own_event *own = gen == NULL ? NULL : tw_own_event(gen->experiments, type);

  if (own == NULL) return to_event_args(type, out);
  for (unsigned i = 0; i < own->spec.nargs; i++) out[i] = own->spec.args[i].type;
  return own->spec.nargs;
}

const char *to_generation_experiment(const struct to_generation *gen, uint8_t type) {
  const struct tw_own_event *own = gen == NULL ? NULL : tw_own_event(gen->experiments, type);

  if (own != NULL) return gen->experiments->experiment[own->experiment].name;
  return tw_spec(type)->kind == TW_KIND_EXPERIMENT ? tw_experiment_name(TW_EXPERIMENT_ALLOC_FREE)
                                                   : NULL;
}

bool to_generation_event_is(const struct to_generation *gen, uint8_t type, const char *experiment,
                            const char *name, const char *const *labels) {
  const char *own = to_generation_experiment(gen, type);
  const struct tw_spec *spec = to_generation_spec(gen, type);
  unsigned n = 0;

  if (own == NULL || strcmp(own, experiment) != 0 || strcmp(spec->name, name) != 0) return false;
  for (; labels[n] != NULL; n++)
    if (n == spec->nargs || strcmp(spec->args[n].label, labels[n]) != 0) return false;
  return n == spec->nargs;
}
