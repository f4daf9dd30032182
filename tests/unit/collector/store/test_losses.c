/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "collector/segment/losses.h"
#include "proto/frame.pb-c.h"

#define UNKNOWN TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN
#define DAMAGED TRACECOLLECT__V1__LOSS_REASON__LOSS_DAMAGED

static struct tc__loss loss_of(uint64_t gen, uint64_t seq, uint32_t reason, uint64_t batches) {
  return (struct tc__loss){ .first_gen = gen,
                            .last_gen = gen,
                            .batches = batches,
                            .bytes = 100 * batches,
                            .seq = seq,
                            .reason = reason };
}

static void note(struct tc__losses *losses, struct tc__loss loss) {
  cr_assert_eq(tc__losses_note(losses, &loss), TB_OK);
}

Test(losses, noting_one_twice_is_noting_it_once) {
  struct tc__losses losses = { 0 };

  note(&losses, loss_of(3, 70, UNKNOWN, 2));
  note(&losses, loss_of(4, 80, UNKNOWN, 1));
  note(&losses, loss_of(3, 70, UNKNOWN, 2));
  cr_assert_eq(losses.n, 2);
  cr_assert_eq(losses.items[0].batches, 2);
  note(&losses, loss_of(3, 70, UNKNOWN, 5));
  cr_assert_eq(losses.n, 2);
  cr_assert_eq(losses.items[0].batches, 5, "the greater count stands");
  cr_assert_eq(losses.items[0].bytes, 500);
  note(&losses, loss_of(3, 70, DAMAGED, 1));
  cr_assert_eq(losses.n, 3, "for another reason it is another loss");
  cr_assert_eq(tc__losses_find(&losses, 80, UNKNOWN), &losses.items[1]);
  cr_assert_null(tc__losses_find(&losses, 80, DAMAGED));
  tc__losses_fini(&losses);
}

Test(losses, batches_of_a_generation_that_was_given_up_are_one_loss) {
  struct tc__losses losses = { 0 };

  cr_assert_eq(tc__losses_note_batch(&losses, 7, 90, 10), TB_OK);
  cr_assert_eq(tc__losses_note_batch(&losses, 7, 91, 20), TB_OK);
  cr_assert_eq(tc__losses_note_batch(&losses, 8, 92, 30), TB_OK);
  cr_assert_eq(losses.n, 2);
  cr_assert_eq(losses.items[0].seq, 90);
  cr_assert_eq(losses.items[0].batches, 2);
  cr_assert_eq(losses.items[0].bytes, 30);
  cr_assert_eq(losses.items[1].first_gen, 8);
  tc__losses_fini(&losses);
}

Test(losses, more_than_there_is_room_for_are_one_at_the_end) {
  struct tc__losses losses = { 0 };
  uint64_t batches = 0;

  for (uint64_t i = 1; i <= TC__LOSSES_MAX + 3; i++) note(&losses, loss_of(i, i, UNKNOWN, 1));
  cr_assert_eq(losses.n, TC__LOSSES_MAX);
  for (size_t i = 0; i < losses.n; i++) batches += losses.items[i].batches;
  cr_assert_eq(batches, TC__LOSSES_MAX + 3);
  cr_assert_eq(losses.items[losses.n - 1].first_gen, TC__LOSSES_MAX);
  cr_assert_eq(losses.items[losses.n - 1].last_gen, TC__LOSSES_MAX + 3);
  tc__losses_fini(&losses);
}

Test(losses, two_sets_become_one) {
  struct tc__losses to = { 0 }, from = { 0 };

  note(&from, loss_of(1, 10, UNKNOWN, 1));
  cr_assert_eq(tc__losses_move(&to, &from), TB_OK);
  cr_assert_eq(to.n, 1);
  cr_assert_eq(from.n, 0);
  note(&from, loss_of(1, 10, UNKNOWN, 4));
  note(&from, loss_of(2, 11, UNKNOWN, 1));
  cr_assert_eq(tc__losses_move(&to, &from), TB_OK);
  cr_assert_eq(to.n, 2);
  cr_assert_eq(from.n, 0);
  cr_assert_eq(to.items[0].batches, 4);
  tc__losses_fini(&to);
  tc__losses_fini(&from);
}

Test(losses, a_meta_has_each_once) {
  struct tc__losses losses = { 0 };
  tc_meta *meta = malloc(sizeof *meta);

  tracecollect__v1__segment_meta__init(meta);
  note(&losses, loss_of(1, 10, UNKNOWN, 1));
  cr_assert_eq(tc__losses_into_meta(&losses, meta), TB_OK);
  note(&losses, loss_of(2, 20, DAMAGED, 3));
  losses.items[1].first_seq = 15;
  cr_assert_eq(tc__losses_into_meta(&losses, meta), TB_OK);
  cr_assert_eq(meta->n_losses, 2);
  cr_assert_eq(meta->losses[0]->seq, 10);
  cr_assert_eq(meta->losses[1]->seq, 20);
  cr_assert_eq(meta->losses[1]->first_seq, 15);
  cr_assert_eq(meta->losses[1]->batches, 3);
  tc_meta_free(meta);
  tc__losses_fini(&losses);
}
