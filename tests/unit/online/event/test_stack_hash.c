/* SPDX-License-Identifier: Apache-2.0 */
/* I11: ids start over with each generation, hashes do not. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/event/view.h"
#include "online/trace/pull.h"
#include "support/patience.h"
#include "support/seeds.h"

enum {
  HEADER = 16,
  GENERATIONS = 12,
  SEVERAL_GENERATIONS = 11, /* in the table of seeds.sh */
  DEPTH = 128,
  STACKS = TT_LESS(2000, 300),
};

struct stack {
  uint64_t id, hash, pc[DEPTH];
  size_t n;
};

struct stacks {
  struct stack stack[STACKS];
  size_t n;
};

static void note(struct stacks *all, const struct to_generation *gen, uint64_t id) {
  for (size_t i = 0; i < all->n; i++)
    if (all->stack[i].id == id) return;
  if (all->n == STACKS) return;
  struct stack *stack = &all->stack[all->n];
  *stack = (struct stack){ .id = id, .hash = to_stack_hash(gen, id) };
  stack->n = to_stack_pcs(gen, id, stack->pc, DEPTH);
  all->n += stack->n > 0;
}

static void read_stacks(const struct tt_input *trace, struct tt_place place, struct stacks *out) {
  struct to_part part = { trace->data, HEADER, place.offset, place.offset + place.bytes, 0 };
  const struct to_generation *gen;
  const struct to_event *ev;
  struct to_pull *pull;
  struct tb_diag diag;
  struct tb_mem mem;
  tb_rc rc;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(to_pull_new(&mem, NULL, TO_READER_BYTES_STAY, to_part_source(&part), &diag, &pull),
               TB_OK);
  while ((rc = to_pull_next(pull, &ev, &gen)) == TB_OK) {
    uint64_t id = to_event_stack(ev);
    if (gen == NULL || id == TO_NO_STACK || id == 0) continue;
    cr_assert_eq(to_stack_hash(gen, 0), 0);
    note(out, gen, id);
  }
  cr_assert_eq(rc, TB_END, "%s", diag.text);
  to_pull_free(pull);
}

Test(stack_hash, is_the_same_in_each_generation) {
  static struct stacks first, second;
  struct tt_pack seeds = tt_seeds_load();
  const struct tt_input *trace = &seeds.input[SEVERAL_GENERATIONS];
  struct tt_place place[GENERATIONS];
  size_t n = tt_generations(trace->data, trace->len, place, GENERATIONS), met = 0, other_ids = 0;

  cr_assert_geq(n, 2);
  read_stacks(trace, place[0], &first);
  read_stacks(trace, place[1], &second);
  for (size_t i = 0; i < first.n; i++)
    for (size_t k = 0; k < second.n; k++) {
      const struct stack *a = &first.stack[i], *b = &second.stack[k];
      if (a->n != b->n || memcmp(a->pc, b->pc, a->n * sizeof a->pc[0]) != 0) continue;
      cr_assert_eq(a->hash, b->hash);
      met++;
      other_ids += a->id != b->id;
    }
  cr_assert(met > 0 && other_ids > 0, "%zu met, %zu by other ids", met, other_ids);
  tt_pack_free(&seeds);
}
