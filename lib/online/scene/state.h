/* SPDX-License-Identifier: Apache-2.0 */
/* All goroutines of one moment of a generation, those together that were in the same state at the same stack.
 *
 * The generation is read once. What a goroutine was in before it began is known only as far as the generation says.
 *
 * Memory    from mem, given back before the call returns; what found() gets is lent for it.
 * Errors    as of online/scene/scene.h; found()'s answer.
 */
#ifndef TO_SCENE_STATE_H
#define TO_SCENE_STATE_H

#include "online/scene/source.h"
#include "online/spans/spans.h"

struct to_scene_in_state {
  int64_t id;
  to_ns since;
  bool since_known; /* else the generation begins with it */
};

struct to_scene_state {
  enum to_go_state state;
  const struct to_reason_info *reason;       /* of a wait */
  const struct to_callstack *stack;          /* the last one known; NULL: none is */
  const struct to_scene_in_state *goroutine; /* the one that is in it the longest first */
  size_t n;
};

struct to_scene_states {
  uint64_t gen;
  to_ns at;
  const struct to_scene_state *state; /* the one with the most goroutines first */
  size_t n, goroutines;
};

TB_MUST tb_rc to_scene_state_at(struct tb_mem *mem, const struct to_scene_source *source, to_ns at,
                                struct tb_diag *diag,
                                tb_rc (*found)(void *self, const struct to_scene_states *states),
                                void *self);

#endif
