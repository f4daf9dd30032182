/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/analysis/pauses_history.h"

static const uint64_t second = 1000000000, began = UINT64_C(1700000000) * 1000000000;

static struct tc_pauses_history *history;
static struct tb_mem mem;
static struct tb_buf text;

static void open_history(void) {
  cr_assert_eq(tc_pauses_history_new(TC_PAUSES_HISTORY_BYTES_MIN, began, &history), TB_OK);
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&text, &mem);
}

static void close_history(void) {
  tb_buf_fini(&text);
  tc_pauses_history_free(history);
}

TestSuite(history, .init = open_history, .fini = close_history);

/* Notes the totals of stream n in second `at`. */
static void note(unsigned n, bool begins, uint64_t at, const char *cause, uint64_t total_ns) {
  unsigned char id[16];
  struct to_stop_total total = { cause, total_ns };
  struct tc_pauses_history_of of = { id, "shop", "host-1", begins };

  memset(id, 0, sizeof id);
  memcpy(id, &n, sizeof n);
  tc_pauses_history_stops(history, &of, &total, 1, began + at * second);
}

static const char *written(uint64_t at) {
  tb_buf_clear(&text);
  tc_pauses_history_write(history, began + at * second, &text);
  tb_buf_byte(&text, 0);
  cr_assert_eq(text.rc, TB_OK);
  return (const char *)text.data;
}

static void expect(uint64_t at, const char *part) {
  const char *said = written(at);

  cr_assert_not_null(strstr(said, part), "%s", said);
}

Test(history, totals_become_what_was_added_in_their_second) {
  note(1, true, 1, "/stw/gc/sweep-termination", 500);
  note(1, false, 2, "/stw/gc/sweep-termination", 500);
  note(1, false, 3, "/stw/gc/sweep-termination", 700);
  note(2, true, 3, "/stw/all-goroutines-stack", 40);
  expect(4, "{\"since\":1700000000,\"until\":1700000004,\"streams\":[{\"stream\":\"01000000");
  expect(4, "\"service\":\"shop\",\"instance\":\"host-1\"},{\"stream\":\"0200");
  expect(4, "\"causes\":[\"/stw/gc/sweep-termination\",\"/stw/all-goroutines-stack\"]");
  expect(4, "\"stops\":[[1700000001,0,0,500],[1700000003,0,0,200],[1700000003,1,1,40]]}");
}

Test(history, what_is_past_goes) {
  note(1, true, 1, "/stw/a", 500);
  note(1, false, 200, "/stw/a", 600);
  expect(1 + TC_PAUSES_HISTORY_SECONDS, "[[1700000001,0,0,500],[1700000200,0,0,100]]");
  expect(2 + TC_PAUSES_HISTORY_SECONDS, "\"since\":1700000002,");
  expect(2 + TC_PAUSES_HISTORY_SECONDS, "[[1700000200,0,0,100]]");
}

Test(history, a_ring_that_is_full_says_from_where_on_nothing_is_missing) {
  uint64_t stops = TC_PAUSES_HISTORY_BYTES_MIN / 2 / 16 + 20;

  for (uint64_t i = 1; i <= stops; i++) note(1, i == 1, 1 + i / 10, "/stw/a", i);
  expect(stops / 10 + 1, "\"since\":1700000004,"); /* some of the third second are gone */
}

Test(history, a_stream_without_a_place_has_none_until_one_has_left) {
  unsigned n = 0;

  while (n < 1000) note(++n, true, 1, "/stw/a", 7);
  const char *said = written(1);
  cr_assert_null(strstr(said, "\"stream\":\"e8030000"), "%s", said);
  note(1000, false, 400, "/stw/a", 9);
  note(1000, false, 401, "/stw/a", 12);
  expect(401, "\"stream\":\"e8030000");
  expect(401, "\"stops\":[[1700000401,0,0,3]]"); /* without what it had before */
}

Test(history, causes_without_a_place_are_one) {
  char id[40];

  for (unsigned i = 0; i < 100; i++) {
    snprintf(id, sizeof id, "/stw/other/cause-%u", i);
    note(i + 1, true, 1, id, 7);
  }
  expect(1, "\"/stw/other/cause-46\",\"/stw/other\"]");
}
