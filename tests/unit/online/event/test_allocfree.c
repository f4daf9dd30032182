/* SPDX-License-Identifier: Apache-2.0 */
/* F4, F5, F17 to F20, J6: the experiment's batches, once a generation, and its events with typed
 * values. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/event/allocfree.h"
#include "online/trace/pull.h"
#include "support/seeds.h"
#include "wire/write.h"

struct seen {
  size_t spans, objects, typed, stacks, frees;
  bool strings; /* a type that every Go program has */
};

static void check(const struct to_allocfree *af, const struct to_heap_event *ev,
                  struct seen *seen) {
  cr_assert(af->packing_known && ev->address >= af->heap_start);
  seen->frees += ev->verb == TO_HEAP_FREE;
  if (ev->verb == TO_HEAP_FREE) return;
  switch (ev->thing) {
  case TO_HEAP_SPAN:
    cr_assert(ev->bytes >= af->page_bytes && ev->bytes % af->page_bytes == 0);
    cr_assert_eq(ev->address % af->page_bytes, 0);
    cr_assert(ev->holds_objects || ev->size_class == 0);
    cr_assert_lt(ev->size_class, 70);
    seen->spans++;
    break;
  case TO_HEAP_OBJECT:
    seen->objects++;
    if (ev->type == NULL) break;
    seen->typed++;
    cr_assert(ev->bytes == ev->type->bytes && ev->type->pointer_bytes <= ev->type->bytes);
    cr_assert_gt(ev->type->name.len, 0);
    seen->strings |= memmem(ev->type->name.data, ev->type->name.len, "string", 6) != NULL;
    break;
  case TO_HEAP_STACK:
    cr_assert(ev->bytes >= 2048 && (ev->bytes & (ev->bytes - 1)) == 0, "%lu",
              (unsigned long)ev->bytes);
    seen->stacks++;
    break;
  }
}

static struct seen read_trace(const struct tt_input *trace) {
  struct to_part part = { trace->data, 16, 16, trace->len, 0 };
  const struct to_generation *gen, *last = NULL;
  struct seen seen = { 0 };
  const struct to_event *ev;
  struct to_allocfree af;
  struct to_pull *pull;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  to_allocfree_init(&af, &mem);
  cr_assert_eq(to_pull_new(&mem, NULL, TO_READER_BYTES_STAY, to_part_source(&part), &diag, &pull),
               TB_OK);
  while (to_pull_next(pull, &ev, &gen) == TB_OK) {
    struct to_heap_event heap;
    if (gen != last && gen != NULL) cr_assert_eq(to_allocfree_generation(&af, gen), TB_OK);
    last = gen;
    bool is = to_allocfree_event(&af, ev, &heap);
    cr_assert_eq(is, ev->type >= TW_EV_SPAN && ev->type <= TW_EV_GOROUTINE_STACK_FREE);
    if (is) check(&af, &heap, &seen);
  }
  to_pull_free(pull);
  to_allocfree_fini(&af);
  cr_assert_eq(mem.bytes, 0);
  return seen;
}

Test(allocfree, real_events_become_addresses_sizes_and_types) {
  enum { GO_1_23 = 5, GO_1_26 = 13 }; /* in the table of seeds.sh */
  struct tt_pack seeds = tt_seeds_load();
  const size_t which[] = { GO_1_23, GO_1_26 };

  for (int i = 0; i < 2; i++) {
    struct seen seen = read_trace(&seeds.input[which[i]]);
    cr_assert(seen.spans > 10 && seen.objects > 50 && seen.stacks > 3, "%zu %zu %zu", seen.spans,
              seen.objects, seen.stacks);
    cr_assert(seen.typed > 10 && seen.strings, "%zu of %zu objects have a type", seen.typed,
              seen.objects);
  }
  tt_pack_free(&seeds);
}

Test(allocfree, other_traces_have_none_of_it) {
  struct tt_pack seeds = tt_seeds_load();
  struct seen seen = read_trace(&seeds.input[0]);

  cr_assert_eq(seen.spans + seen.objects + seen.stacks + seen.frees, 0);
  tt_pack_free(&seeds);
}

/* A single event, without a layout: addresses are not known, but the id and the size of a stack are. */
Test(allocfree, what_is_not_known_is_left_out) {
  struct to_heap_event heap;
  struct to_allocfree af;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_allocfree_init(&af, &mem);
  struct to_event stack = { .type = TW_EV_GOROUTINE_STACK_ALLOC, .args = { 9, 13 } },
                  odd = { .type = TW_EV_GOROUTINE_STACK, .args = { 9, 200 } },
                  object = { .type = TW_EV_HEAP_OBJECT_ALLOC, .args = { 7, 3 } },
                  runtimes = { .type = TW_EV_SPAN, .args = { 5, 2, 1 } },
                  large = { .type = TW_EV_SPAN_ALLOC, .args = { 5, 2, 2 } };
  cr_assert(to_allocfree_event(&af, &stack, &heap));
  cr_assert(heap.thing == TO_HEAP_STACK && heap.verb == TO_HEAP_ALLOC && heap.id == 9);
  cr_assert(heap.bytes == 4096 && heap.address == 0);
  cr_assert(to_allocfree_event(&af, &odd, &heap) && heap.bytes == 0);
  cr_assert(to_allocfree_event(&af, &object, &heap) && heap.type == NULL && heap.bytes == 0);
  cr_assert(to_allocfree_event(&af, &runtimes, &heap) && !heap.holds_objects);
  cr_assert(to_allocfree_event(&af, &large, &heap) && heap.holds_objects);
  cr_assert(heap.no_pointers && heap.size_class == 0);
  to_allocfree_fini(&af);
}
