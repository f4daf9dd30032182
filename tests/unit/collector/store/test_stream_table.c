/* SPDX-License-Identifier: Apache-2.0 */
/* The log must be kept for a bounded number of units per stream, and ended streams are found by age. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "collector/commit/stream_table.h"

static struct tc_streams streams;
static const char ours[TC_IDENTITY_MAX] = "a";

static void make(void) {
  cr_assert_eq(tc_streams_init(&streams), TB_OK);
}

static void remove_all(void) {
  tc_streams_fini(&streams);
}

TestSuite(stream_table, .init = make, .fini = remove_all);

static struct tc_stream *add(unsigned char id, const char *identity) {
  struct tc_stream_intro intro = { .id = { id } };
  struct tc_stream *stream;

  snprintf(intro.identity, sizeof intro.identity, "%s", identity);
  cr_assert_eq(tc_streams_add(&streams, &intro, &stream), TB_OK);
  return stream;
}

static void settle(struct tc_stream *stream, uint64_t seq) {
  struct tc_settled settled = { .stream = stream->ref, .seq = seq };

  tc_streams_settle(&streams, stream, &settled);
}

Test(stream_table, units_are_bounded_and_the_last_one_holds_what_comes_on_top) {
  enum { MANY = 3 * TC_UNITS_MAX };
  struct tc_stream *stream = add(1, "a");

  for (unsigned n = 1; n <= MANY; n++) tc_streams_hold(&streams, stream, n * 100, n, true);
  cr_assert_eq(stream->nunits, TC_UNITS_MAX);
  settle(stream, TC_UNITS_MAX - 1);
  cr_assert_eq(stream->nunits, 1);
  cr_assert_eq(tc_streams_hold_lsn(&streams), TC_UNITS_MAX * 100);
  settle(stream, MANY - 1);
  cr_assert_eq(tc_streams_hold_lsn(&streams), TC_UNITS_MAX * 100, "its last record is not settled");
  tc_streams_hold(&streams, stream, (MANY + 1) * 100, MANY + 1, true);
  cr_assert_eq(stream->nunits, 2, "there is room again");
  settle(stream, MANY);
  cr_assert_eq(tc_streams_hold_lsn(&streams), (MANY + 1) * 100);
  settle(stream, MANY + 1);
  cr_assert_eq(stream->nunits, 0);
  cr_assert_eq(tc_streams_hold_lsn(&streams), UINT64_MAX);
}

Test(stream_table, of_the_streams_that_are_over_the_oldest_is_found) {
  struct tc_stream *open = add(1, "a"), *other = add(2, "b"), *held = add(3, "a"),
                   *closed = add(4, "a"), *given_up = add(5, "a");

  other->closed = held->closed = closed->closed = given_up->abandoned = true;
  open->contact_mono_ns = 1;
  other->contact_mono_ns = 2;
  held->contact_mono_ns = 3;
  given_up->contact_mono_ns = 4;
  closed->contact_mono_ns = 5;
  tc_streams_hold(&streams, held, 100, 1, true);
  cr_assert_eq(tc_streams_oldest_over(&streams, ours), given_up);
  tc_streams_remove(&streams, given_up);
  cr_assert_eq(tc_streams_oldest_over(&streams, ours), closed);
  tc_streams_remove(&streams, closed);
  cr_assert_null(tc_streams_oldest_over(&streams, ours));
}
