/* SPDX-License-Identifier: Apache-2.0 */
/* live-heap [-a] TRACE: what a program still held when its trace ended, by type; -a: each object's address, too.
 *
 *   cc live_heap.c $(pkg-config --cflags --libs traceonline) -o live-heap
 *
 * For traces with Go's AllocFree experiment: of Go programs run with GODEBUG=traceallocfree=1, of C programs under
 * libtraceagent-preload.so with TRACEAGENT_MALLOC=1, or that call ta_memory_tell(). online/event/allocfree.h makes addresses,
 * sizes and types of the events' numbers; a type is known by its own address, since its number is good for one generation.
 * In a story that is complete nothing is freed that was not there, and nothing made where something lies already. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "online/event/allocfree.h"
#include "online/trace/reader.h"

struct type {
  char *name;
  uint64_t bytes, live, made;
};

struct heap {
  struct to_allocfree allocfree;
  struct tb_map object;     /* address: index of its type */
  struct tb_map place[3];   /* spans and stacks that exist, by enum to_heap_thing */
  struct tb_map by_address; /* a type's address: its index */
  struct type *type;        /* the first one is for objects without a type */
  size_t types, room;
  uint64_t made, freed, before; /* objects */
  uint64_t strange, over;       /* freed, but not known; made, but known already */
};

static tb_rc find_type(struct heap *heap, const struct to_heap_type *type, uint64_t *out) {
  uint64_t *index;
  bool fresh;

  TB_TRY(tb_map_put(&heap->by_address, type == NULL ? 0 : type->address, &index, &fresh));
  if (fresh) {
    if (heap->types == heap->room) {
      heap->room = heap->room * 2 + 64;
      void *grown = realloc(heap->type, heap->room * sizeof *heap->type);
      if (grown == NULL) return TB_NOMEM;
      heap->type = grown;
    }
    *index = heap->types++;
    heap->type[*index] = (struct type){
      .name = type == NULL ? strdup("(none said)") : strndup(type->name.data, type->name.len),
      .bytes = type == NULL ? 0 : type->bytes,
    };
  }
  *out = *index;
  return TB_OK;
}

static void take_away(struct heap *heap, struct tb_map *places, const struct to_heap_event *ev) {
  const uint64_t *place = tb_map_find(places, ev->address);

  if (place == NULL)
    heap->strange++;
  else if (ev->thing == TO_HEAP_OBJECT)
    heap->type[*place].live--;
  if (place != NULL) tb_map_remove(places, ev->address);
}

static tb_rc take(struct heap *heap, const struct to_heap_event *ev) {
  bool object = ev->thing == TO_HEAP_OBJECT;
  struct tb_map *places = object ? &heap->object : &heap->place[ev->thing];
  uint64_t *place, type = 0;

  if (ev->verb == TO_HEAP_FREE) {
    heap->freed += object;
    take_away(heap, places, ev);
    return TB_OK;
  }
  if (tb_map_find(places, ev->address) != NULL) {
    heap->over++;
    take_away(heap, places, ev);
  }
  if (object) TB_TRY(find_type(heap, ev->type, &type));
  TB_TRY(tb_map_put(places, ev->address, &place, NULL));
  *place = type;
  if (!object) return TB_OK;
  heap->type[type].live++;
  heap->type[type].made++;
  heap->made += ev->verb == TO_HEAP_ALLOC;
  heap->before += ev->verb == TO_HEAP_EXISTS;
  return TB_OK;
}

static tb_rc events(void *self, const struct to_generation *gen, const struct to_event *ev,
                    size_t n) {
  struct heap *heap = self;
  struct to_heap_event event;

  for (; n > 0; ev++, n--) {
    if (ev->type == TW_EV_SYNC && gen != NULL)
      TB_TRY(to_allocfree_generation(&heap->allocfree, gen));
    if (to_allocfree_event(&heap->allocfree, ev, &event)) TB_TRY(take(heap, &event));
  }
  return TB_OK;
}

static int by_bytes(const void *a, const void *b) {
  const struct type *x = a, *y = b;
  uint64_t left = x->bytes * x->live, right = y->bytes * y->live;

  return left < right ? 1 : left > right ? -1 : 0;
}

static void print(struct heap *heap, bool each) {
  uint64_t bytes = 0, address, type;

  for (size_t i = 0; i < heap->types; i++) bytes += heap->type[i].bytes * heap->type[i].live;
  printf("live: %zu objects, %" PRIu64 " bytes, %zu spans, %zu stacks\n", heap->object.count, bytes,
         heap->place[TO_HEAP_SPAN].count, heap->place[TO_HEAP_STACK].count);
  printf("objects: %" PRIu64 " there before, %" PRIu64 " made, %" PRIu64 " freed\n", heap->before,
         heap->made, heap->freed);
  printf("untold: %" PRIu64 " freed that were not there, %" PRIu64 " made where one lay\n",
         heap->strange, heap->over);
  for (size_t i = 0; each && tb_map_next(&heap->object, &i, &address, &type);)
    printf("0x%" PRIx64 " %" PRIu64 " %s\n", address, heap->type[type].bytes,
           heap->type[type].name);
  qsort(heap->type, heap->types, sizeof *heap->type, by_bytes);
  for (size_t i = 0; i < heap->types; i++)
    if (heap->type[i].live > 0)
      printf("%10" PRIu64 " of %" PRIu64 " bytes, %" PRIu64 " made: %s\n", heap->type[i].live,
             heap->type[i].bytes, heap->type[i].made, heap->type[i].name);
}

static void init(struct heap *heap, struct tb_mem *mem) {
  to_allocfree_init(&heap->allocfree, mem);
  tb_map_init(&heap->object, mem, tb_seed());
  tb_map_init(&heap->by_address, mem, tb_seed());
  for (int i = 0; i < 3; i++) tb_map_init(&heap->place[i], mem, tb_seed());
}

static void fini(struct heap *heap) {
  to_allocfree_fini(&heap->allocfree);
  tb_map_fini(&heap->object);
  tb_map_fini(&heap->by_address);
  for (int i = 0; i < 3; i++) tb_map_fini(&heap->place[i]);
  for (size_t i = 0; i < heap->types; i++) free(heap->type[i].name);
  free(heap->type);
}

int main(int argc, char **argv) {
  bool each = argc == 3 && strcmp(argv[1], "-a") == 0;
  const char *path = argc == 2 || each ? argv[argc - 1] : "";
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct tb_diag diag = { 0 };
  struct to_reader *reader;
  struct heap heap = { 0 };
  struct tb_mem mem;
  struct stat st;
  char text[300];

  if (fd < 0 || fstat(fd, &st) != 0) return fprintf(stderr, "usage: live-heap [-a] TRACE\n"), 2;
  const unsigned char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return perror(path), 1;
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  init(&heap, &mem);
  if (to_reader_new(&mem, NULL, TO_READER_BYTES_STAY, (struct to_event_sink){ &heap, events },
                    &diag, &reader) != TB_OK)
    return fprintf(stderr, "out of memory\n"), 1;

  tb_rc rc = to_reader_read(reader, bytes, (size_t)st.st_size);
  to_reader_free(reader);
  if (rc == TB_OK) print(&heap, each);
  fini(&heap);
  if (rc == TB_OK) return 0;
  tb_diag_format(&diag, text, sizeof text);
  return fprintf(stderr, "%s: %s\n", path, text), 1;
}
