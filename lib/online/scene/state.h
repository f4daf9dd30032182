/* SPDX-License-Identifier: Apache-2.0 */
/* All goroutines at one moment of a generation, grouped by state and stack.
 *
 * The generation is read once. A state that began before the generation is known only as far as the generation restates it.
 *
 * Memory    from mem, released before the call returns; found()'s arguments are lent.
 * Errors    as in online/scene/scene.h; found()'s result.
 */
#ifndef TO_SCENE_STATE_H
#define TO_SCENE_STATE_H

#include "online/scene/source.h"
#include "online/spans/spans.h"

struct to_scene_in_state {
  int64_t id;
  to_ns since;
  bool since_known; /* false: since before the generation */
};

struct to_scene_state {
  enum to_go_state state;
  const struct to_reason_info *reason;       /* reason of a wait */
  const struct to_callstack *stack;          /* last known stack; NULL: none */
  const struct to_scene_in_state *goroutine; /* longest in this state first */
  size_t n;
};

struct to_scene_states {
  uint64_t gen;
  to_ns at;
  const struct to_scene_state *state; /* the largest group comes first */
  size_t n, goroutines;
};

TB_MUST tb_rc to_scene_state_at(struct tb_mem *mem, const struct to_scene_source *source, to_ns at,
                                struct tb_diag *diag,
                                tb_rc (*found)(void *self, const struct to_scene_states *states),
                                void *self);

#endif
