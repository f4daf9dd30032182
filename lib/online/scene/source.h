/* SPDX-License-Identifier: Apache-2.0 */
/* One generation's bytes, lent for the call. */
#ifndef TO_SCENE_SOURCE_H
#define TO_SCENE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct to_scene_source {
  /* The last event of the generation before: times rise from there on, as where a reader comes from there. Batches of two
   * generations overlap. 0: not known, or there is none. */
  int64_t after;
  const void *header;
  size_t header_len;
  const void *bytes; /* the whole generation */
  size_t len;
  bool (*go_on)(void *self); /* asked every some 10,000 events; NULL: to the end */
  void *self;
};

#endif
