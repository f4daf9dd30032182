/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/allocator.h"

#include <stdlib.h>

static void *take(void *self, size_t bytes) {
  struct tp_allocator *heap = self;
  void *place = malloc(bytes);

  if (place == NULL) heap->is_short = true;
  return place;
}

static void give(void *self, void *place) {
  (void)self;
  free(place);
}

void tp_allocator_init(struct tp_allocator *heap) {
  *heap =
      (struct tp_allocator){ .allocator = { .alloc = take, .free = give, .allocator_data = heap } };
}
