/* SPDX-License-Identifier: Apache-2.0 */
#include "online/measure/live_objects.h"

#include <string.h>

#include "base/grow.h"
#include "base/hash.h"

enum { TEXT_CHUNK_BYTES = 2 << 10, TEXT_BYTES_MAX = TW_STRING_BYTES_MAX, SPAN_PAGES_MAX = 16 };
#define BYTES_MAX ((UINT64_C(1) << 40) - 1) /* 2^19 such sizes add up without overflow */
#define NO_TYPE   "(no type)"

/* Bytes of an object, by the runtime's size class: Go 1.22 to 1.27. */
static const uint16_t class_bytes[] = {
  0,     8,     16,    24,    32,    48,    64,    80,    96,    112,   128,   144,   160,   176,
  192,   208,   224,   240,   256,   288,   320,   352,   384,   416,   448,   480,   512,   576,
  640,   704,   768,   896,   1024,  1152,  1280,  1408,  1536,  1792,  2048,  2304,  2688,  3072,
  3200,  3456,  4096,  4864,  5376,  6144,  6528,  6784,  6912,  8192,  9472,  9728,  10240, 10880,
  12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576, 27264, 28672, 32768,
};
enum { CLASSES = sizeof class_bytes / sizeof class_bytes[0] };

/* ---- begin and end ---- */

static tb_rc add_allocator(struct to_live_objects *o, struct to_string type, uint32_t entry) {
  struct to_allocator allocator = { .type = type, .entry = entry };

  TB_TRY(TB_MEM_GROW(o->windows->mem, o->allocator, o->room, o->allocators));
  TB_TRY(to_windows_series(o->windows, o->allocated, &allocator.series));
  o->allocator[o->allocators++] = allocator;
  return TB_OK;
}

tb_rc to_live_objects_init(struct to_live_objects *o, struct to_windows *windows) {
  struct tb_mem *mem = windows->mem;

  *o = (struct to_live_objects){ .windows = windows, .n_objects = 1, .secret = tb_seed() };
  to_allocfree_init(&o->allocfree, mem);
  tb_arena_init(&o->text, mem, TEXT_CHUNK_BYTES);
  tb_map_init(&o->objects, mem, tb_seed());
  tb_map_init(&o->pages, mem, tb_seed());
  tb_map_init(&o->by_type, mem, tb_seed());
  tb_map_init(&o->by_key, mem, tb_seed());
  TB_TRY(to_windows_series(windows, TO_NO_SERIES, &o->allocated));
  return add_allocator(o, (struct to_string){ "", 0 }, 0);
}

void to_live_objects_fini(struct to_live_objects *o) {
  if (o->windows == NULL) return;
  to_allocfree_fini(&o->allocfree);
  tb_arena_fini(&o->text);
  tb_map_fini(&o->objects);
  tb_map_fini(&o->pages);
  tb_map_fini(&o->by_type);
  tb_map_fini(&o->by_key);
  tb_mem_free(o->windows->mem, o->allocator, o->room * sizeof(*o->allocator));
  tb_mem_free(o->windows->mem, o->object, o->objects_room * sizeof(*o->object));
}

tb_rc to_live_objects_generation(struct to_live_objects *o, const struct to_generation *gen) {
  return to_allocfree_generation(&o->allocfree, gen);
}

void to_live_objects_forget(struct to_live_objects *o) {
  tb_map_clear(&o->objects);
  tb_map_clear(&o->pages);
  for (struct to_allocator *a = o->allocator; a < o->allocator + o->allocators; a++) {
    a->live = a->live_bytes = 0;
    a->oldest = a->youngest = 0;
  }
  o->n_objects = 1;
  o->free_place = 0;
  o->live = o->live_bytes = 0;
}

/* ---- types ---- */

/* Finds or stores the text of a name. Equal names share one address, which serves as a key. */
static tb_rc keep_type(struct to_live_objects *o, struct to_string name, struct to_string *out) {
  uint64_t *place;
  bool fresh;
  char *copy;

  if (name.len > TEXT_BYTES_MAX) name.len = TEXT_BYTES_MAX;
  uint64_t hash = tb_hash(o->secret, name.data, name.len);
  TB_TRY(tb_map_put(&o->by_type, hash, &place, &fresh));
  if (fresh) {
    tb_rc rc = tb_arena_alloc(&o->text, name.len + 1, &copy);
    if (rc != TB_OK) {
      tb_map_remove(&o->by_type, hash);
      return rc;
    }
    memcpy(copy, name.data, name.len);
    copy[name.len] = '\0';
    *place = (uintptr_t)copy;
  }
  const char *text = (const char *)(uintptr_t)*place;
  *out = (struct to_string){ text, strlen(text) };
  return TB_OK;
}

static tb_rc find_allocator(struct to_live_objects *o, const struct to_heap_type *type,
                            uint32_t entry, uint32_t *out) {
  struct to_string name = { NO_TYPE, sizeof(NO_TYPE) - 1 };
  uint64_t *place;
  bool fresh;

  *out = TO_ALLOCATOR_OTHER;
  if (type != NULL && type->name.len > 0) name = type->name;
  uint64_t hash =
      tb_hash(o->secret, name.data, name.len < TEXT_BYTES_MAX ? name.len : TEXT_BYTES_MAX);
  uint64_t key = tb_hash(hash, &entry, sizeof entry);
  if (o->allocators >= TO_ALLOCATORS_MAX && tb_map_find(&o->by_key, key) == NULL) return TB_OK;
  TB_TRY(keep_type(o, name, &name));
  TB_TRY(tb_map_put(&o->by_key, key, &place, &fresh));
  if (fresh) {
    tb_rc rc = add_allocator(o, name, entry);
    if (rc != TB_OK) {
      tb_map_remove(&o->by_key, key);
      return rc;
    }
    *place = o->allocators - 1;
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

/* ---- spans of the heap ---- */

static uint64_t pages_of(const struct to_live_objects *o, const struct to_heap_event *heap) {
  return o->allocfree.page_bytes == 0 ? 0 : heap->bytes / o->allocfree.page_bytes;
}

/* A large object begins its span, so one page is enough; small ones can be on any page of the span. */
static uint64_t pages_noted(uint64_t pages, unsigned size_class) {
  if (size_class == 0) return 1;
  return pages < SPAN_PAGES_MAX ? pages : SPAN_PAGES_MAX;
}

static tb_rc take_span(struct to_live_objects *o, const struct to_heap_event *heap) {
  uint64_t *value = tb_map_find(&o->pages, heap->id), pages;

  if (heap->verb == TO_HEAP_FREE) {
    if (value == NULL) return TB_OK;
    pages = pages_noted(*value >> 8, (unsigned)(*value & 0xff));
    while (pages > 0) tb_map_remove(&o->pages, heap->id + --pages);
    return TB_OK;
  }
  if (!heap->holds_objects || heap->size_class >= CLASSES) return TB_OK;
  pages = pages_of(o, heap);
  for (uint64_t page = 0; page < pages_noted(pages, heap->size_class); page++) {
    if (o->pages.count >= TO_HEAP_PAGES_MAX) return TB_OK;
    TB_TRY(tb_map_put(&o->pages, heap->id + page, &value, NULL));
    *value = pages << 8 | heap->size_class;
  }
  return TB_OK;
}

static uint64_t bytes_of(const struct to_live_objects *o, const struct to_heap_event *heap) {
  uint64_t page_bytes = o->allocfree.page_bytes;

  if (page_bytes == 0) return heap->bytes;
  const uint64_t *page = tb_map_find(&o->pages, heap->id * o->allocfree.object_align / page_bytes);
  if (page == NULL) return heap->bytes;
  uint64_t size_class = *page & 0xff;
  return size_class > 0 ? class_bytes[size_class] : (*page >> 8) * page_bytes;
}

/* ---- objects ---- */

static tb_rc take_place(struct to_live_objects *o, uint32_t *out) {
  *out = o->free_place;
  if (*out != 0) {
    o->free_place = o->object[*out].younger;
    return TB_OK;
  }
  TB_TRY(TB_MEM_GROW(o->windows->mem, o->object, o->objects_room, o->n_objects));
  *out = (uint32_t)o->n_objects++;
  return TB_OK;
}

static void give_place(struct to_live_objects *o, uint32_t place) {
  o->object[place].younger = o->free_place;
  o->free_place = place;
}

/* Appends the object to its allocator's list, which is ordered by age: objects arrive in order of allocation. */
static void join_row(struct to_live_objects *o, uint32_t place) {
  struct to_live_object *object = &o->object[place];
  struct to_allocator *allocator = &o->allocator[object->allocator];

  object->older = allocator->youngest;
  object->younger = 0;
  *(object->older != 0 ? &o->object[object->older].younger : &allocator->oldest) = place;
  allocator->youngest = place;
}

static void leave_row(struct to_live_objects *o, const struct to_live_object *object) {
  struct to_allocator *allocator = &o->allocator[object->allocator];

  *(object->older != 0 ? &o->object[object->older].younger : &allocator->oldest) = object->younger;
  *(object->younger != 0 ? &o->object[object->younger].older : &allocator->youngest) =
      object->older;
}

static void object_dies(struct to_live_objects *o, uint64_t id) {
  const uint64_t *found = tb_map_find(&o->objects, id);

  if (found == NULL) return;
  uint32_t place = (uint32_t)*found;
  const struct to_live_object *object = &o->object[place];
  struct to_allocator *allocator = &o->allocator[object->allocator];
  allocator->live--;
  allocator->live_bytes -= object->bytes;
  o->live--;
  o->live_bytes -= object->bytes;
  leave_row(o, object);
  give_place(o, place);
  tb_map_remove(&o->objects, id);
}

static tb_rc object_lives(struct to_live_objects *o, uint64_t id,
                          const struct to_live_object *object) {
  struct to_allocator *allocator = &o->allocator[object->allocator];
  uint64_t *found;
  uint32_t place;

  object_dies(o, id); /* an object of this id whose end is missing from the trace */
  if (o->objects.count >= TO_OBJECTS_MAX) {
    o->untracked++;
    return TB_OK;
  }
  TB_TRY(take_place(o, &place));
  tb_rc rc = tb_map_put(&o->objects, id, &found, NULL);
  if (rc != TB_OK) {
    give_place(o, place);
    return rc;
  }
  *found = place;
  o->object[place] = *object;
  join_row(o, place);
  allocator->live++;
  allocator->live_bytes += object->bytes;
  o->live++;
  o->live_bytes += object->bytes;
  return TB_OK;
}

static tb_rc take_object(struct to_live_objects *o, const struct to_heap_event *heap,
                         const struct to_event *ev, uint32_t entry) {
  uint32_t number;

  if (heap->verb == TO_HEAP_FREE) {
    object_dies(o, heap->id);
    return TB_OK;
  }
  TB_TRY(find_allocator(o, heap->type, heap->verb == TO_HEAP_ALLOC ? entry : 0, &number));
  uint64_t bytes = bytes_of(o, heap);
  if (bytes > BYTES_MAX) bytes = BYTES_MAX;
  TB_TRY(object_lives(
      o, heap->id,
      &(struct to_live_object){ .born = ev->time, .bytes = bytes, .allocator = number }));
  if (heap->verb == TO_HEAP_ALLOC)
    to_windows_sum(o->windows, o->allocator[number].series, ev->time - (to_ns)bytes, ev->time, 0,
                   false);
  return TB_OK;
}

tb_rc to_live_objects_event(struct to_live_objects *o, const struct to_generation *gen,
                            const struct to_event *ev, uint32_t entry) {
  const struct tw_spec *spec = to_generation_spec(gen, ev->type);
  struct to_heap_event heap;

  if (spec != tw_spec(ev->type) || !to_allocfree_event(&o->allocfree, ev, &heap)) return TB_OK;
  o->seen = true;
  if (heap.thing == TO_HEAP_SPAN) return take_span(o, &heap);
  return heap.thing == TO_HEAP_OBJECT ? take_object(o, &heap, ev, entry) : TB_OK;
}
