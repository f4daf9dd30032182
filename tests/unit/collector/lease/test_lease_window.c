/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "collector/lease/window.h"

static void add(struct tc_lease_window *w, size_t len, uint64_t events, uint64_t lost_before) {
  struct tc_bundle *b = tc_bundle_new(0, len);

  b->events = events;
  b->lost_before = lost_before;
  tc_lease_window_add(w, b);
}

struct got {
  tb_rc rc;
  const struct tc_bundle *first;
  size_t n;
  uint64_t lost;
};

static struct got next(struct tc_lease_window *w, uint64_t after, size_t bytes_max) {
  struct got got = { 0 };

  got.rc = tc_lease_window_next(w, after, bytes_max, &got.first, &got.n, &got.lost);
  return got;
}

Test(lease_window, gives_bundles_in_order_and_keeps_them_until_acknowledged) {
  struct tc_lease_window w;

  tc_lease_window_init(&w, 1000);
  cr_assert_eq(next(&w, 0, 1000).n, 0);
  for (int i = 0; i < 3; i++) add(&w, 100, 10, 0);
  struct got got = next(&w, 0, 1000);
  cr_assert_eq(got.n, 3);
  cr_assert_eq(got.first->number, 1);
  cr_assert_eq(got.lost, 0);
  got = next(&w, 0, 1000); /* as if the answer was lost: the same bundles again */
  cr_assert_eq(got.n, 3);
  cr_assert_eq(w.bytes, 300);
  cr_assert_eq(next(&w, 3, 1000).n, 0);
  cr_assert_eq(w.bytes, 0);
  add(&w, 100, 10, 0);
  got = next(&w, 3, 1000);
  cr_assert_eq(got.n, 1);
  cr_assert_eq(got.first->number, 4);
  cr_assert_eq(got.lost, 0);
  tc_lease_window_fini(&w);
}

Test(lease_window, an_answer_holds_so_many_bytes_but_one_bundle_at_least) {
  struct tc_lease_window w;

  tc_lease_window_init(&w, 1000);
  for (int i = 0; i < 5; i++) add(&w, 100, 10, 0);
  cr_assert_eq(next(&w, 0, 250).n, 2);
  cr_assert_eq(next(&w, 2, 50).n, 1);
  cr_assert_eq(next(&w, 3, 200).n, 2);
  tc_lease_window_fini(&w);
}

Test(lease_window, what_falls_out_is_told_where_it_is_missing) {
  struct tc_lease_window w;

  tc_lease_window_init(&w, 300);
  for (int i = 0; i < 5; i++) add(&w, 100, 10, 0); /* bundles 1 and 2 are gone */
  cr_assert_leq(w.bytes, 300);
  cr_assert_eq(w.lost, 20);
  struct got got = next(&w, 0, 1000);
  cr_assert_eq(got.first->number, 3);
  cr_assert_eq(got.lost, 20);
  got = next(&w, 0, 1000);
  cr_assert_eq(got.lost, 20, "asked again, it is told again");
  add(&w, 100, 7, 0); /* drops bundle 3, which the reader has already */
  cr_assert_eq(w.lost, 20);
  got = next(&w, 5, 1000);
  cr_assert_eq(got.first->number, 6);
  cr_assert_eq(got.lost, 0);
  tc_lease_window_fini(&w);
}

Test(lease_window, what_the_loop_dropped_counts_as_lost_where_it_was_dropped) {
  struct tc_lease_window w;

  tc_lease_window_init(&w, 1000);
  add(&w, 100, 10, 0);
  add(&w, 100, 10, 4);
  add(&w, 0, 0, 3); /* reports a loss only */
  struct got got = next(&w, 0, 1000);
  const struct tc_bundle *second = got.first->next, *third = second->next;
  cr_assert_eq(got.n, 3);
  cr_assert_eq(got.lost, 0);
  cr_assert_eq(second->position - (got.first->position + got.first->events), 4);
  cr_assert_eq(third->position - (second->position + second->events), 3);
  cr_assert_eq(w.lost, 7);
  tc_lease_window_fini(&w);
}

Test(lease_window, a_part_may_be_acknowledged) {
  struct tc_lease_window w;

  tc_lease_window_init(&w, 1000);
  for (int i = 0; i < 4; i++) add(&w, 100, 10, 0);
  cr_assert_eq(next(&w, 0, 1000).n, 4);
  struct got got = next(&w, 2, 1000);
  cr_assert_eq(got.n, 2);
  cr_assert_eq(got.first->number, 3);
  cr_assert_eq(got.lost, 0);
  tc_lease_window_fini(&w);
}

Test(lease_window, a_bundle_that_was_never_given_cannot_be_acknowledged) {
  struct tc_lease_window w;

  tc_lease_window_init(&w, 1000);
  add(&w, 100, 10, 0);
  cr_assert_eq(next(&w, 1, 1000).rc, TB_PROTOCOL);
  cr_assert_eq(next(&w, 0, 1000).n, 1);
  cr_assert_eq(next(&w, 2, 1000).rc, TB_PROTOCOL);
  cr_assert_eq(next(&w, 1, 1000).rc, TB_OK);
  cr_assert_eq(next(&w, 0, 1000).rc, TB_PROTOCOL, "what is acknowledged does not come back");
  tc_lease_window_fini(&w);
}

Test(lease_window, never_keeps_more_than_it_may_whatever_comes) {
  struct tc_lease_window w;
  uint64_t seen = 0, lost = 0, events = 0, after = 0;
  unsigned random = 1;

  tc_lease_window_init(&w, 5000);
  for (int i = 0; i < 20000; i++) {
    random = random * 1103515245 + 12345;
    if ((random >> 16) % 4 != 0) {
      uint64_t n = (random >> 20) % 50, dropped = (random >> 24) % 16 == 0;
      add(&w, 1 + (random >> 18) % 900, n, dropped);
      events += n + dropped;
      cr_assert_leq(w.bytes, 5000);
      continue;
    }
    struct got got = next(&w, after, (random >> 20) % 3000);
    cr_assert_eq(got.rc, TB_OK);
    if ((random >> 28) % 3 == 0) continue; /* the answer did not arrive */
    const struct tc_bundle *b = got.first;
    lost += got.lost;
    for (size_t k = 0; k < got.n; k++, b = b->next) {
      cr_assert_gt(b->number, after);
      after = b->number;
      seen += b->events;
      if (k + 1 < got.n) lost += b->next->position - (b->position + b->events);
    }
  }
  while (w.first != NULL) {
    struct got got = next(&w, after, 1000000);
    lost += got.lost;
    for (const struct tc_bundle *b = got.first; b != NULL; b = b->next) {
      after = b->number;
      seen += b->events;
      if (b->next != NULL) lost += b->next->position - (b->position + b->events);
    }
    (void)next(&w, after, 0);
  }
  cr_assert_eq(seen + lost, events, "%lu + %lu of %lu", seen, lost, events);
  cr_assert_gt(lost, 0);
  cr_assert_gt(seen, 0);
  tc_lease_window_fini(&w);
}
