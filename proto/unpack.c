/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/unpack.h"

static void *arena_alloc(void *self, size_t bytes) {
  void *block;

  return tb_arena_alloc(self, bytes, &block) == TB_OK ? block : NULL;
}

static void arena_free(void *self, void *block) {
  (void)self;
  (void)block; /* freed with the arena */
}

ProtobufCAllocator tp_arena_allocator(struct tb_arena *arena) {
  return (ProtobufCAllocator){ .alloc = arena_alloc, .free = arena_free, .allocator_data = arena };
}
