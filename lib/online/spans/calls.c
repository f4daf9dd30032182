/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/calls.h"

#include <string.h>

#include "base/grow.h"
#include "online/spans/state.h"

tb_rc to_calls_init(struct to_calls *c, struct tb_mem *mem, struct to_windows *windows,
                    struct to_stack_table *stacks) {
  *c = (struct to_calls){ .mem = mem, .windows = windows, .stacks = stacks };
  TB_TRY(to_windows_series(windows, TO_NO_SERIES, &c->kept));
  return to_windows_series(windows, TO_NO_SERIES, &c->lost);
}

void to_calls_fini(struct to_calls *c) {
  if (c->mem != NULL) tb_mem_free(c->mem, c->of_stack, c->of_stacks * sizeof(*c->of_stack));
}

static tb_rc grow(struct to_calls *c, uint32_t number) {
  while (c->of_stacks <= number) {
    size_t room = c->of_stacks;
    TB_TRY(TB_MEM_GROW(c->mem, c->of_stack, room, c->of_stacks));
    memset(c->of_stack + c->of_stacks, 0, (room - c->of_stacks) * sizeof(*c->of_stack));
    c->of_stacks = room;
  }
  return TB_OK;
}

tb_rc to_calls_find(struct to_calls *c, const struct to_generation *gen, uint64_t stack,
                    uint32_t *out_series) {
  struct to_calls_recent *recent = &c->recent[stack % TO_CALLS_RECENT];
  uint32_t number, kept, lost;

  TB_TRY(to__stack_number(c->stacks, gen, stack, &number));
  TB_TRY(grow(c, number));
  if (c->of_stack[number] == 0) {
    TB_TRY(to_windows_series(c->windows, c->kept, &kept));
    TB_TRY(to_windows_series(c->windows, c->lost, &lost)); /* kept + 1 */
    c->of_stack[number] = kept;
  }
  *out_series = c->of_stack[number];
  *recent = (struct to_calls_recent){ stack, c->stacks->epoch, *out_series };
  return TB_OK;
}
