/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a session in every layout that a program may have been compiled with. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/emit/emit_scene.h"
#include "tests/unit/agent/forward_scene.h"

/* As the header had them before ta_emit_forward_status(). */
struct old_forward_status {
  size_t size;
  int state;
  uint64_t produced_batches, produced_bytes;
  uint64_t acked_batches, acked_bytes, acked_generations;
  uint64_t lost_batches, lost_bytes, lost_generations;
  uint64_t spool_bytes, spool_bytes_peak;
  uint64_t connects, reconnects;
  uint64_t resent_batches;
  char stream[33];
  char last_error[200];
  uint64_t faults;
  uint64_t begun_anew;
  uint64_t disk_bytes, disk_faults;
  uint64_t old_streams, old_streams_sent;
  uint64_t recorded_generations, recorded_bytes, forgotten_generations, snaps;
};

struct old_emit_status {
  size_t size;
  uint64_t generations, lost_generations, dropped, misused, threads;
  int cycle_clock;
  struct old_forward_status stream;
  uint64_t lost_stacks, samples, lost_samples;
};

enum { CANARY = 0xa5 };

static void say(void) {
  ta_misuse_aborts = false;
  ta_region_end();
  ta_log(0, ta_name_of("key"), "text");
}

Test(emit_status, a_program_of_the_old_layout_finds_every_field_where_it_was) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
  struct ta_forward_config where = { .size = sizeof where,
                                     .server = tt_collector_address(s.collector),
                                     .certs = s.dir,
                                     .service = "shop" };
  struct {
    struct old_emit_status status;
    unsigned char behind[64];
  } old;
  struct ta_emit_status now = { .size = sizeof now };
  struct ta_forward_status stream = { .size = sizeof stream };

  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS),
               TA_OK); /* the collector takes one at a time */
  cr_assert_eq(ta_emit_start(&where, NULL), TA_OK);
  say();
  cr_assert_eq(ta_emit_sync(TT_PATIENCE_MS), TA_OK);
  memset(&old, CANARY, sizeof old);
  old.status.size = sizeof old.status;
  cr_assert_eq(ta_emit_status((struct ta_emit_status *)(void *)&old.status), TA_OK);
  cr_assert_eq(ta_emit_status(&now), TA_OK);
  cr_assert_eq(ta_emit_forward_status(&stream), TA_OK);
  cr_expect_eq(old.status.size, sizeof old.status);
  cr_expect_eq(old.status.misused, 1);
  cr_expect_eq(old.status.threads, 1);
  cr_expect_eq(old.status.cycle_clock, now.cycle_clock);
  cr_expect_eq(old.status.stream.size, sizeof old.status.stream);
  cr_expect_eq(old.status.stream.state, TA_STATE_STREAMING);
  cr_expect_str_eq(old.status.stream.stream, stream.stream);
  cr_expect_gt(old.status.stream.acked_bytes, 0);
  cr_expect_eq(old.status.stream.faults, 0);
  cr_expect_eq(old.status.stream.snaps, 0);
  cr_expect_eq(old.status.lost_stacks, 0);
  cr_expect_eq(old.status.lost_samples, 0);
  for (size_t i = 0; i < sizeof old.behind; i++) cr_assert_eq(old.behind[i], CANARY);
  cr_assert_eq(ta_emit_stop(TT_PATIENCE_MS), TA_OK);
  scene_end(&s);
}

Test(emit_status, no_layout_is_written_beyond_its_size) {
  static unsigned char room[2 * sizeof(struct old_emit_status)];
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  say();
  for (size_t size = sizeof(size_t); size <= sizeof room; size += sizeof(uint64_t)) {
    memset(room, CANARY, sizeof room);
    memcpy(room, &size, sizeof size);
    cr_assert_eq(ta_emit_status((struct ta_emit_status *)(void *)room), TA_OK);
    cr_assert_eq(memcmp(room, &size, sizeof size), 0, "size %zu was changed", size);
    for (size_t i = size; i < sizeof room; i++) cr_assert_eq(room[i], CANARY, "%zu: %zu", size, i);
    memset(room, CANARY, sizeof room);
    memcpy(room, &size, sizeof size);
    cr_assert_eq(ta_emit_forward_status((struct ta_forward_status *)(void *)room), TA_OK);
    cr_assert_eq(memcmp(room, &size, sizeof size), 0, "size %zu was changed", size);
    for (size_t i = size; i < sizeof room; i++) cr_assert_eq(room[i], CANARY, "%zu: %zu", size, i);
  }
  cr_assert_eq(emit_end(&e), 0);
  emit_free(&e);
}
