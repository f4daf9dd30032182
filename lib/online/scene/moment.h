/* SPDX-License-Identifier: Apache-2.0 */
/* The span of a goroutine, a P or a thread at one moment of a generation, with its stacks.
 *
 * Pictures have no stacks, so the generation is read once more; only spans that contain the moment are examined.
 *
 * Memory    from mem, released before the call returns; found()'s arguments are lent.
 * Errors    as in online/scene/scene.h; TB_NOTFOUND: no span at this moment; found()'s result.
 */
#ifndef TO_SCENE_MOMENT_H
#define TO_SCENE_MOMENT_H

#include "online/scene/source.h"
#include "online/spans/spans.h"

enum to_moment_of { TO_MOMENT_OF_GOROUTINE, TO_MOMENT_OF_PROC, TO_MOMENT_OF_THREAD };

struct to_moment_ask {
  enum to_moment_of of;
  int64_t id;
  to_ns at;
};

struct to_moment {
  uint64_t gen;
  const struct to_reason_info *reason; /* reason of span, if it is a wait */
  struct to_span span;                 /* kind GOROUTINE, with its P and thread */
  /* NULL: unknown. entry: the function that the goroutine began with. */
  const struct to_callstack *stack, *end_stack, *by_stack, *creation_stack;
  const struct to_frame *entry;
  int64_t creator; /* TO_NONE: unknown */
  bool created_known;
  to_ns created;
};

TB_MUST tb_rc to_moment_find(struct tb_mem *mem, const struct to_scene_source *source,
                             const struct to_moment_ask *ask, struct tb_diag *diag,
                             tb_rc (*found)(void *self, const struct to_moment *moment),
                             void *self);

#endif
