/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a generation: what its batches contain, and what is derived from it. */
#include <criterion/criterion.h>
#include <string.h>

#include "archive/generation_time.h"
#include "wire/batch.h"
#include "wire/sections.h"

typedef Tracecollect__V1__GenerationMeta generation_meta;

static size_t put(unsigned char *out, uint64_t value) {
  size_t n = 0;

  for (; value >= 0x80; value >>= 7) out[n++] = (unsigned char)(value | 0x80);
  out[n++] = (unsigned char)value;
  return n;
}

static size_t sync_of(unsigned char *out, uint64_t time, uint64_t dt, uint64_t wall_s,
                      uint64_t wall_ns) {
  unsigned char data[64];
  size_t n = 0;

  data[n++] = TW_EV_SYNC;
  data[n++] = TW_EV_FREQUENCY;
  n += put(data + n, 15625000);
  data[n++] = TW_EV_CLOCK_SNAPSHOT;
  n += put(data + n, dt);
  n += put(data + n, 7);
  n += put(data + n, wall_s);
  n += put(data + n, wall_ns);
  struct tw_batch batch = { .gen = 1, .thread = -1, .time = time, .data = data, .len = n };
  size_t head = tw_batch_write_header(out, &batch);
  memcpy(out + head, data, n);
  return head + n;
}

static size_t events_of(unsigned char *out, uint64_t time) {
  static const unsigned char go_status[] = { TW_EV_GO_STATUS, 1, 1, 0, 1 };
  struct tw_batch batch = { .gen = 1, .thread = 5, .time = time, .data = go_status, .len = 5 };
  size_t head = tw_batch_write_header(out, &batch);

  memcpy(out + head, go_status, sizeof go_status);
  return head + sizeof go_status;
}

static generation_meta traced_by(unsigned version) {
  struct tc_clock_ticks ticks = { 0 };
  unsigned char bytes[256];
  generation_meta meta;

  tc_clock_ticks_take(&ticks, version, bytes, sync_of(bytes, 1000, 500, 1700000000, 250000000));
  tc_clock_ticks_take(&ticks, version, bytes, events_of(bytes, 2000));
  tc_clock_ticks_take(&ticks, version, bytes, events_of(bytes, 1500));
  tc_clock_ticks_take(&ticks, version, "\xff\xff", 2); /* no batch at all */
  tracecollect__v1__generation_meta__init(&meta);
  tc_clock_ticks_put(&ticks, &meta);
  return meta;
}

enum { TICK_NS = 64 };
static const uint64_t snapshot_wall = UINT64_C(1700000000250000000);

Test(wall, before_a_verdict_a_generation_reaches_as_far_as_its_batches) {
  generation_meta meta = traced_by(26);
  struct tc_wall wall = tc_generation_wall(&meta, 5);

  cr_assert_eq(meta.clock_ns, 1500 * TICK_NS);
  cr_assert(!wall.estimated);
  cr_assert_eq(wall.first_ns, snapshot_wall - 500 * TICK_NS);
  cr_assert_eq(wall.last_ns, snapshot_wall + 500 * TICK_NS);
}

Test(wall, in_order_it_reaches_from_its_first_event_to_its_last) {
  Tracecollect__V1__Verdict verdict = TRACECOLLECT__V1__VERDICT__INIT;
  generation_meta meta = traced_by(26);

  meta.verdict = &verdict;
  meta.first_ns = 1500 * TICK_NS;
  meta.last_ns = 1500 * TICK_NS + 3;
  verdict.code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
  struct tc_wall wall = tc_generation_wall(&meta, 5);
  cr_assert_eq(wall.first_ns, snapshot_wall);
  cr_assert_eq(wall.last_ns, snapshot_wall + 3);
  /* A broken generation: its events end at the fault, but the program went on. */
  verdict.code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN;
  cr_assert_eq(tc_generation_wall(&meta, 5).last_ns, snapshot_wall + 500 * TICK_NS);
}

Test(wall, without_a_clock_it_ends_when_the_agent_says_and_is_marked) {
  generation_meta meta = traced_by(26);

  meta.clock_wall_ns = 0;
  meta.end_wall_ns = 9000000;
  struct tc_wall wall = tc_generation_wall(&meta, 7000000);
  cr_assert(wall.estimated);
  cr_assert_eq(wall.last_ns, 9000000);
  cr_assert_eq(wall.first_ns, 9000000 - 1000 * TICK_NS);
  meta.end_wall_ns = 0;
  cr_assert_eq(tc_generation_wall(&meta, 7000000).last_ns, 7000000, "else it ends when it came");
}

Test(wall, numbers_of_a_peer_may_be_anything) {
  static const uint64_t odd[] = { 0,         1, INT64_MAX - 1, INT64_MAX, (uint64_t)INT64_MAX + 1,
                                  UINT64_MAX };
  enum { N = sizeof odd / sizeof odd[0] };
  generation_meta meta;

  for (unsigned i = 0; i < N * N * N * N; i++) {
    tracecollect__v1__generation_meta__init(&meta);
    meta.clock_wall_ns = odd[i % N];
    meta.clock_ns = (int64_t)odd[i / N % N];
    meta.first_ns = (int64_t)odd[i / N / N % N];
    meta.last_ns = meta.batches_last_ns = (int64_t)odd[i / N / N / N];
    meta.end_wall_ns = odd[(i + 3) % N];
    struct tc_wall wall = tc_generation_wall(&meta, odd[(i + 1) % N]);
    cr_assert_leq(wall.first_ns, wall.last_ns, "%u", i);
    cr_assert_leq(wall.last_ns, (uint64_t)INT64_MAX, "%u", i);
  }
}
