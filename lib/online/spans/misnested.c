/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/misnested.h"

#include <string.h>

#include "online/spans/state.h"

static void set_name(struct to_misnested_region *region, struct to_string name) {
  size_t len = name.len < sizeof region->name ? name.len : sizeof region->name - 1;

  if (len > 0) memcpy(region->name, name.data, len);
  region->name[len] = '\0';
}

static struct to_misnested *find_by_stack(struct to_misnesting *all, uint32_t stack) {
  for (size_t i = 0; i < all->n; i++)
    if (all->at[i].ended.stack == stack) return &all->at[i];
  if (all->n == TO_MISNESTED_MAX) return NULL;
  all->at[all->n] = (struct to_misnested){ .ended.stack = stack };
  return &all->at[all->n++];
}

tb_rc to__misnested(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev,
                    const struct to_open_region *open) {
  struct to_user_event user;
  uint32_t stack;

  if (s->misnesting == NULL) TB_TRY(tb_mem_alloc(s->mem, sizeof *s->misnesting, &s->misnesting));
  s->misnesting->generation = s->generation_from;
  s->misnesting->ends++;
  to_event_user(ev, &user);
  TB_TRY(to__stack_number(&s->stacks, gen, to__stack_of(s, ev), &stack));
  struct to_misnested *at = find_by_stack(s->misnesting, stack);
  if (at == NULL) return TB_OK;
  if (at->count++ == 0) at->first = ev->time;
  at->last = ev->time;
  at->goroutine = ev->g;
  at->ended.task = user.task;
  set_name(&at->ended, to__string_of(s, gen, user.name));
  at->open = (struct to_misnested_region){ .task = 0 };
  if (open == NULL) return TB_OK;
  at->open.task = open->task;
  set_name(&at->open, to__name_text(open->name));
  return to__stack_number(&s->stacks, gen, open->stack, &at->open.stack);
}

const struct to_misnesting *to_spans_misnesting(const struct to_spans *s) {
  return s->misnesting;
}
