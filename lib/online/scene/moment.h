/* SPDX-License-Identifier: Apache-2.0 */
/* What a goroutine, a P or a thread did at one moment of a generation: the span, with its stacks.
 *
 * The generation is read once, and only spans that hold the moment are looked at: a picture keeps no stacks.
 *
 * Memory    from mem, given back before the call returns; what found() gets is lent for it.
 * Errors    as of online/scene/scene.h; TB_NOTFOUND: there was nothing; found()'s answer.
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
  const struct to_reason_info *reason; /* of span, if it is a wait */
  struct to_span span; /* of kind GOROUTINE: with what was on the P, on the thread */
  /* NULL: not known. entry: of the function that the goroutine began in. */
  const struct to_callstack *stack, *end_stack, *by_stack, *creation_stack;
  const struct to_frame *entry;
  int64_t creator; /* TO_NONE: not known */
  bool created_known;
  to_ns created;
};

TB_MUST tb_rc to_moment_find(struct tb_mem *mem, const struct to_scene_source *source,
                             const struct to_moment_ask *ask, struct tb_diag *diag,
                             tb_rc (*found)(void *self, const struct to_moment *moment),
                             void *self);

#endif
