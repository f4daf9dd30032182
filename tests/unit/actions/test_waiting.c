/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/actions/progress.h"
#include "tools/actions/waiting.h"

static struct ac_waiting waiting;

static struct ac_task put(const char *rule, uint64_t id) {
  struct ac_task task = { .id = id, .text = strdup("text") }, given_up;

  strcpy(task.rule, rule);
  cr_assert_eq(ac_waiting_put(&waiting, &task, &given_up), TB_OK);
  free(given_up.text);
  return given_up;
}

static struct ac_task taken(uint64_t now_ns) {
  struct ac_task task;

  cr_assert(ac_waiting_take(&waiting, now_ns, &task));
  return task;
}

static uint64_t done(uint64_t now_ns) {
  struct ac_task task = taken(now_ns);
  uint64_t id = task.id;

  ac_waiting_over(&waiting, &task);
  return id;
}

static void none_is_left(void) {
  cr_assert_eq(waiting.n, 0);
  cr_assert_eq(ac_waiting_due(&waiting), UINT64_MAX);
  cr_assert_null(waiting.queues);
}

Test(waiting, rules_are_served_in_turn) {
  for (uint64_t id = 1; id <= 5; id++) put("flaps", id);
  cr_assert_eq(done(0), 1);
  put("rare", 6);
  put("other", 7);
  cr_assert_eq(done(0), 2);
  cr_assert_eq(done(0), 6);
  cr_assert_eq(done(0), 7);
  for (uint64_t id = 3; id <= 5; id++) cr_assert_eq(done(0), id);
  none_is_left();
}

Test(waiting, one_that_is_tried_again_delays_its_own_rule_only) {
  struct ac_task other;

  put("fails", 1);
  put("fails", 2);
  put("fine", 3);
  struct ac_task task = taken(0);
  cr_assert_eq(task.id, 1);
  /* A rule's second action is not taken while its first one runs. */
  cr_assert(ac_waiting_take(&waiting, 0, &other));
  cr_assert_eq(other.id, 3);
  ac_waiting_over(&waiting, &other);
  ac_waiting_later(&waiting, &task, 100);
  cr_assert_eq(ac_waiting_due(&waiting), 100);
  cr_assert_not(ac_waiting_take(&waiting, 99, &other));
  cr_assert_eq(done(100), 1);
  cr_assert_eq(done(100), 2);
  none_is_left();
}

Test(waiting, the_rule_with_the_most_makes_room) {
  put("rare", 1);
  for (uint64_t id = 2; id <= AC_WAITING_MAX; id++) cr_assert_eq(put("flaps", id).id, 0);
  for (uint64_t id = 1; id <= 100; id++) {
    struct ac_task given_up = put("rare", AC_WAITING_MAX + id);
    cr_assert_str_eq(given_up.rule, "flaps");
    cr_assert_eq(given_up.id, 1 + id);
  }
  cr_assert_eq(waiting.n, AC_WAITING_MAX);
  cr_assert_eq(done(0), 1);
  ac_waiting_fini(&waiting);
  none_is_left();
}

Test(progress, is_of_a_rule_while_others_wait) {
  char dir[] = "/tmp/tc-progress-XXXXXX";
  struct ac_progress *progress;
  struct tb_diag diag, wrong;

  tb_diag_clear(&diag);
  cr_assert_not_null(mkdtemp(dir));
  cr_assert_eq(ac_progress_open(dir, &diag, &wrong, &progress), TB_OK, "%s", diag.text);
  cr_assert_eq(ac_progress_of(progress, "exec:page", "rare"), 0);
  cr_assert_eq(ac_progress_note(progress, "exec:page", "", 10, &diag), TB_OK);
  cr_assert_eq(ac_progress_note(progress, "exec:page", "rare", 30, &diag), TB_OK);
  cr_assert_eq(ac_progress_note(progress, "exec:other", "", 40, &diag), TB_OK);
  ac_progress_free(progress);
  cr_assert_eq(ac_progress_open(dir, &diag, &wrong, &progress), TB_OK, "%s", diag.text);
  cr_assert_eq(wrong.rc, TB_OK, "%s", wrong.text);
  cr_assert_eq(ac_progress_of(progress, "exec:page", "rare"), 30);
  cr_assert_eq(ac_progress_of(progress, "exec:page", "flaps"), 10);
  cr_assert_eq(ac_progress_of(progress, "exec:page", ""), 10);
  cr_assert_eq(ac_progress_note(progress, "exec:page", "", 50, &diag), TB_OK);
  cr_assert_eq(ac_progress_of(progress, "exec:page", "rare"), 50);
  cr_assert_eq(ac_progress_of(progress, "exec:other", "rare"), 40);
  struct ac_progress *second;
  cr_assert_eq(ac_progress_open(dir, &diag, &wrong, &second), TB_REFUSED);
  cr_assert_not_null(strstr(diag.text, "is in use by another tracecollect-actions"));
  ac_progress_free(progress);
  int fd = open(dir, O_RDONLY | O_DIRECTORY);
  unlinkat(fd, "progress", 0);
  close(fd);
  rmdir(dir);
}
