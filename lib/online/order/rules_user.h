/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the program's tasks, regions and logs. Names are kept as text, because string ids are valid in one
 * generation only. */
#ifndef TO_ORDER_RULES_USER_H
#define TO_ORDER_RULES_USER_H

#include "online/event/view.h"
#include "online/order/rules.h"

TO_HOT tb_rc find_name(struct to_order *o, struct to_step *s, uint64_t id, struct to_string *out) {
  if (TB_LIKELY(to_generation_string(o->gen, id, out))) return TB_OK;
  return TO_REFUSE(o, s, "%s names string %" PRIu64 ", which the generation does not have",
                   TO_NAME(s), id);
}

/* Ids may be used again after an end; an end needs no begin. */
TO_HOT tb_rc apply_task_begin(struct to_order *o, struct to_step *s) {
  uint64_t parent = s->arg[1] == 0 ? TO_NO_TASK : s->arg[1];
  bool again = tb_map_find(&o->tasks, s->arg[0]) != NULL;
  struct to_string name;

  if (TB_UNLIKELY(again)) TB_TRY(to__task_again(o, s->t, s->arg[0]));
  TB_TRY(find_name(o, s, s->arg[2], &name));
  TB_TRY(to__task_add(o, s->arg[0], parent, name));
  stage(s)->args[1] = parent;
  return TB_OK;
}

TO_HOT tb_rc apply_task_end(struct to_order *o, struct to_step *s) {
  const uint64_t *found = tb_map_find(&o->tasks, s->arg[0]);
  uint64_t parent = TO_NO_TASK, name_id = 0;

  if (found != NULL) {
    const struct to_task *task = (const struct to_task *)(uintptr_t)*found;
    struct to_string name = { task->name->text, task->name->len };
    TB_TRY(to__extra_string(o->gen, name, &name_id));
    parent = task->parent;
    to__task_drop(o, s->arg[0]);
  }
  struct to_event *ev = stage(s);
  ev->args[2] = parent;
  ev->args[3] = name_id;
  return TB_OK;
}

TO_HOT tb_rc apply_region_begin(struct to_order *o, struct to_step *s) {
  struct to_g *g = s->t->g;
  struct to_string name;

  TB_TRY(find_name(o, s, s->arg[1], &name));
  if (!g_exists(g))
    return TO_REFUSE(o, s, "UserRegionBegin on goroutine %" PRId64 ", which does not exist", g->id);
  TB_TRY(to__region_add(o, g, s->arg[0], name));
  stage(s);
  return TB_OK;
}

/* Must end the innermost region; without an open region it is accepted, as the region may have begun before the trace. */
TO_HOT tb_rc apply_region_end(struct to_order *o, struct to_step *s) {
  struct to_g *g = s->t->g;
  const struct to_region *top = g->more == NULL ? NULL : g->more->regions;
  struct to_string name;

  TB_TRY(find_name(o, s, s->arg[1], &name));
  if (!g_exists(g))
    return TO_REFUSE(o, s, "UserRegionEnd on goroutine %" PRId64 ", which does not exist", g->id);
  if (TB_LIKELY(top != NULL && top->task == s->arg[0] && to__name_is(top->name, name))) {
    to__region_drop(o, g);
    stage(s);
  } else if (top == NULL) {
    bool lost = g->more != NULL && g->more->dropped_regions;
    if (!lost) o->lone_region_ends++;
    stage(s)->args[3] = lost ? TO_NESTING_LOST : TO_NESTED;
  } else {
    TB_TRY(to__region_misnested(o, s->t, s->arg[0], name));
    stage(s)->args[3] = TO_MISNESTED;
  }
  return TB_OK;
}

#endif
