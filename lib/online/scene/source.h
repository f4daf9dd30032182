/* SPDX-License-Identifier: Apache-2.0 */
/* One generation's bytes, lent for the call. */
#ifndef TO_SCENE_SOURCE_H
#define TO_SCENE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct to_scene_source {
  /* Time of the last event of the generation before; 0: unknown or none. Earlier events, from batches that overlap, are
   * moved after it, as a reader of both generations would do. */
  int64_t after;
  const void *header;
  size_t header_len;
  const void *bytes; /* the whole generation */
  size_t len;
  bool (*go_on)(void *self); /* called about every 10,000 events; false: stop. NULL: never stop */
  void *self;
};

#endif
