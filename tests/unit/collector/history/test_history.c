/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/clock.h"
#include "collector/history/history.h"

#define DAY_NS UINT64_C(86400000000000)

static char dir[] = "/tmp/tc-history-XXXXXX";
static int state = -1;
static struct tc_config config;
static struct tc_history *history;

static void begin(void) {
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc_history_open(state, &config, &diag, &history), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_history_start(history), TB_OK);
}

/* Restarts the history. After that pending data is on the disk, and expired data is deleted. */
static void begin_again(void) {
  tc_history_stop(history);
  tc_history_free(history);
  begin();
}

static void make_state(void) {
  cr_assert_not_null(mkdtemp(dir));
  state = open(dir, O_RDONLY | O_DIRECTORY);
  cr_assert_geq(state, 0);
  config = (struct tc_config){ .reports_age = 0 };
  begin();
}

static void remove_state(void) {
  char command[64];

  tc_history_stop(history);
  tc_history_free(history);
  close(state);
  snprintf(command, sizeof command, "rm -r %s", dir);
  cr_assert_eq(system(command), 0);
}

TestSuite(history, .init = make_state, .fini = remove_state);

static void stream_id(unsigned n, unsigned char out[TC_STREAM_BYTES]) {
  memset(out, (int)n, TC_STREAM_BYTES);
}

static tb_rc add(unsigned stream, uint64_t until_ns, size_t len) {
  unsigned char id[TC_STREAM_BYTES], *bytes = malloc(len);

  stream_id(stream, id);
  uint64_t seed = until_ns;
  for (size_t i = 0; i < len; i++) { /* so that compression does not make it small */
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    bytes[i] = (unsigned char)(seed >> 56);
  }
  const struct tc_report_record record = { until_ns - 1000, until_ns, bytes, len };
  tb_rc rc = tc_history_add(history, id, &record);
  free(bytes);
  return rc;
}

static tb_rc count(void *self, const struct tc_report_record *record) {
  unsigned *n = self;

  cr_assert_eq(record->until_ns - record->from_ns, 1000);
  ++*n;
  return TB_OK;
}

static unsigned count_of(unsigned stream, uint64_t from_ns, uint64_t until_ns) {
  unsigned char id[TC_STREAM_BYTES];
  struct tb_diag diag = { 0 };
  uint64_t damaged;
  unsigned n = 0;

  stream_id(stream, id);
  cr_assert_eq(tc_history_read(history, id, from_ns, until_ns, &n, count, &damaged, &diag), TB_OK,
               "%s", diag.text);
  cr_assert_eq(damaged, 0);
  return n;
}

Test(history, gives_each_stream_its_own_over_days) {
  uint64_t now = tc_wall_ns();

  for (unsigned day = 0; day < 3; day++) {
    cr_assert_eq(add(1, now - day * DAY_NS, 100), TB_OK);
    cr_assert_eq(add(2, now - day * DAY_NS, 100), TB_OK);
    cr_assert_eq(add(2, now - day * DAY_NS + 5000, 100), TB_OK);
  }
  begin_again();
  cr_assert_eq(count_of(1, 0, UINT64_MAX), 3);
  cr_assert_eq(count_of(2, 0, UINT64_MAX), 6);
  cr_assert_eq(count_of(3, 0, UINT64_MAX), 0);
  cr_assert_eq(count_of(1, now - DAY_NS - 10, now - DAY_NS + 10), 1);
  cr_assert_eq(count_of(2, now - DAY_NS, UINT64_MAX), 4);
}

Test(history, what_is_older_goes_by_day) {
  uint64_t now = tc_wall_ns();

  for (unsigned day = 0; day < 5; day++) cr_assert_eq(add(1, now - day * DAY_NS, 100), TB_OK);
  config.reports_age = 2 * DAY_NS;
  begin_again();
  begin_again(); /* the check at the start now sees everything */
  cr_assert_eq(count_of(1, 0, UINT64_MAX), 3);
}

Test(history, the_oldest_days_make_room) {
  uint64_t now = tc_wall_ns();

  for (unsigned day = 0; day < 4; day++) cr_assert_eq(add(1, now - day * DAY_NS, 10000), TB_OK);
  config.reports_bytes = 25000;
  begin_again();
  begin_again();
  cr_assert_eq(count_of(1, 0, UINT64_MAX), 2);
  config.reports_bytes = 1; /* the day that is being written is kept */
  begin_again();
  begin_again();
  cr_assert_eq(count_of(1, 0, UINT64_MAX), 1);
}

Test(history, a_disk_that_does_not_keep_up_costs_records_and_no_more_memory) {
  uint64_t now = tc_wall_ns();
  tb_rc rc = TB_OK;
  unsigned n = 0;

  while (n < 100 && (rc = add(1, now + n * 2000, 1 << 20)) == TB_OK) n++;
  cr_assert(rc == TB_BUDGET || n == 100);
  begin_again();
  cr_assert_eq(count_of(1, 0, UINT64_MAX), n);
}

/* A wrong clock must not make a report outlive reports of other streams. */
Test(history, what_is_of_the_future_is_among_todays) {
  uint64_t now = tc_wall_ns();

  cr_assert_eq(add(1, now + 30 * DAY_NS, 10000), TB_OK);
  cr_assert_eq(add(1, now - DAY_NS, 10000), TB_OK);
  begin_again();
  cr_assert_eq(count_of(1, now + 29 * DAY_NS, now + 31 * DAY_NS), 1);
  cr_assert_eq(count_of(1, 0, UINT64_MAX), 2);
  config.reports_bytes = 1;
  begin_again();
  begin_again();
  cr_assert_eq(count_of(1, 0, UINT64_MAX), 1);
}
