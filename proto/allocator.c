/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/allocator.h"

#include <stdlib.h>

static void *take(void *self, size_t bytes) {
  struct tc_heap *heap = self;
  void *place = malloc(bytes);

  if (place == NULL) heap->is_short = true;
  return place;
}

static void give(void *self, void *place) {
  (void)self;
  free(place);
}

void tc_heap_init(struct tc_heap *heap) {
  *heap = (struct tc_heap){ .allocator = { .alloc = take, .free = give, .allocator_data = heap } };
}
