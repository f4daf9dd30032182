/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/allocator.h"

#include <stdlib.h>

static void *allocate(void *self, size_t bytes) {
  struct tp_allocator *heap = self;
  void *place = malloc(bytes);

  if (place == NULL) heap->is_short = true;
  return place;
}

static void release(void *self, void *place) {
  (void)self;
  free(place);
}

void tp_allocator_init(struct tp_allocator *heap) {
  *heap = (struct tp_allocator){ .allocator = {
                                     .alloc = allocate, .free = release, .allocator_data = heap } };
}
