/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a session is as long as in the header that the program was compiled with. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/agent/emit/emit_scene.h"

enum { CANARY = 0xa5 };

static void say(void) {
  ta_misuse_aborts = false;
  ta_region_end();
  ta_log(0, ta_name_of("key"), "text");
}

Test(emit_status, nothing_is_written_beyond_its_size) {
  static unsigned char room[2 * sizeof(struct ta_forward_status)];
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
