/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop of a session: late, or while other threads wait for the session. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/emit/generation/session.h"
#include "tests/unit/agent/forward_scene.h"

static struct ta_forward_config config_of(const struct scene *s) {
  return (struct ta_forward_config){ .size = sizeof(struct ta_forward_config),
                                     .server = tt_collector_address(s->collector),
                                     .certs = s->dir,
                                     .service = "shop" };
}

static struct scene quiet_scene(struct tt_collector_rules rules) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);

  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0); /* one connection at a time */
  tt_collector_rule(s.collector, rules);
  return s;
}

static uint64_t generations(void) {
  struct ta_emit_status status = { .size = sizeof status };

  return ta_emit_status(&status) == TA_OK ? status.generations : 0;
}

static int tasks(void) {
  int n = 0;
  DIR *dir = opendir("/proc/self/task");

  for (const struct dirent *task; (task = readdir(dir)) != NULL;) n += task->d_name[0] != '.';
  closedir(dir);
  return n;
}

static void *sync_for_ever(void *answer) {
  *(int *)answer = ta_emit_sync(-1);
  return NULL;
}

/* Once, both calls waited for ever. */
Test(emit_ends, neither_stop_nor_status_waits_for_a_sync_without_end) {
  struct scene s = quiet_scene((struct tt_collector_rules){ .no_acks = true });
  struct ta_forward_config where = config_of(&s);
  int answer = TA_OK;
  pthread_t waiter;

  cr_assert_eq(ta_emit_start(&where, NULL), TA_OK);
  ta_heap_alloc(1);
  cr_assert_eq(pthread_create(&waiter, NULL, sync_for_ever, &answer), 0);
  TT_WAIT_UNTIL(generations() > 0); /* now the stop waits for acks */
  cr_assert_eq(ta_emit_stop(100), TA_E_TIMEOUT);
  cr_assert_eq(pthread_join(waiter, NULL), 0);
  cr_assert_lt(answer, TA_OK);
  cr_assert_eq(ta_emit_start(&where, NULL), TA_OK, "there may be another");
  cr_assert_lt(ta_emit_stop(0), TA_OK);
  scene_end(&s);
}

static void *stop(void *answer) {
  *(int *)answer = ta_emit_stop(TT_PATIENCE_MS);
  return NULL;
}

Test(emit_ends, of_two_that_stop_a_session_one_does) {
  struct scene s = quiet_scene((struct tt_collector_rules){ 0 });
  struct ta_forward_config where = config_of(&s);
  pthread_t thread[2];
  int answer[2];

  cr_assert_eq(ta_emit_start(&where, NULL), TA_OK);
  for (int i = 0; i < 2; i++) cr_assert_eq(pthread_create(&thread[i], NULL, stop, &answer[i]), 0);
  for (int i = 0; i < 2; i++) cr_assert_eq(pthread_join(thread[i], NULL), 0);
  cr_assert(answer[0] == TA_OK ? answer[1] == TA_E_OFF
                               : answer[1] == TA_OK && answer[0] == TA_E_OFF);
  scene_end(&s);
}

Test(emit_ends, a_late_session_has_no_thread_and_no_connection_and_loses_nothing) {
  struct scene s = quiet_scene((struct tt_collector_rules){ 0 });
  struct ta_forward_config where = config_of(&s);
  unsigned connections = seen_by(&s).connections;

  int before = tasks(); /* one of these threads may be about to end */
  cr_assert_eq(ta_emit_start_late(&where, NULL), TA_OK);
  ta_region_begin(ta_name_of("early"), 0);
  cr_assert_leq(tasks(), before);
  cr_assert_eq(ta_emit_run(0), TA_OK);
  cr_assert_eq(ta_emit_run(0), TA_E_OFF, "it runs");
  ta_region_end();
  cr_assert_eq(ta_emit_stop(TT_PATIENCE_MS), TA_OK);
  cr_assert_eq(seen_by(&s).connections, connections + 1);
  cr_assert(seen_by(&s).closed);
  cr_assert_gt(seen_by(&s).batches, 0);
  scene_end(&s);
}

Test(emit_ends, a_late_session_that_is_stopped_runs_first) {
  struct scene s = quiet_scene((struct tt_collector_rules){ 0 });
  struct ta_forward_config where = config_of(&s);
  uint64_t batches = seen_by(&s).batches;

  cr_assert_eq(ta_emit_start_late(&where, NULL), TA_OK);
  ta_heap_alloc(1);
  cr_assert_eq(ta_emit_stop(TT_PATIENCE_MS), TA_OK);
  cr_assert_gt(seen_by(&s).batches, batches);
  scene_end(&s);
}

Test(emit_ends, a_late_session_that_is_abandoned_was_never_there) {
  struct scene s = quiet_scene((struct tt_collector_rules){ 0 });
  struct ta_forward_config where = config_of(&s);
  unsigned connections = seen_by(&s).connections;

  cr_assert_eq(ta_emit_start_late(&where, NULL), TA_OK);
  ta_heap_alloc(1);
  ta_emit_abandon();
  cr_assert_eq(ta_emit_stop(0), TA_E_OFF);
  cr_assert_eq(seen_by(&s).connections, connections);
  cr_assert_eq(ta_emit_start_late(&where, NULL), TA_OK, "there may be another");
  ta_emit_abandon();
  scene_end(&s);
}

Test(emit_ends, a_late_session_says_when_much_is_written_or_a_snap_is_asked_for) {
  struct scene s = quiet_scene((struct tt_collector_rules){ 0 });
  struct ta_forward_config where = config_of(&s);

  cr_assert_eq(ta_emit_start_late(&where, NULL), TA_OK);
  cr_assert_not(ta_emit_is_due());
  for (int i = 0; i < 100000 && !ta_emit_is_due(); i++) ta_heap_alloc((uint64_t)i);
  cr_assert(ta_emit_is_due());
  ta_emit_abandon();
  where.record_ms = 1000;
  cr_assert_eq(ta_emit_start_late(&where, NULL), TA_OK);
  cr_assert_not(ta_emit_is_due());
  cr_assert_eq(ta_emit_snap(0), TA_OK);
  cr_assert(ta_emit_is_due());
  ta_emit_abandon();
  scene_end(&s);
}

Test(emit_ends, a_child_that_fork_does_not_know_of_has_no_session) {
  struct scene s = quiet_scene((struct tt_collector_rules){ .no_acks = true });
  struct ta_forward_config where = config_of(&s);
  struct ta_emit_status status = { .size = sizeof status };
  int how;

  cr_assert_eq(ta_emit_start(&where, NULL), TA_OK);
  ta_heap_alloc(1);
  pid_t child = _Fork();
  if (child == 0) {
    bool off = ta_emit_sync(-1) == TA_E_OFF && ta_emit_status(&status) == TA_E_OFF &&
               ta_emit_stop(-1) == TA_E_OFF && ta_emit_run(0) == TA_E_OFF;
    _exit(off ? 0 : 1);
  }
  cr_assert_eq(waitpid(child, &how, 0), child);
  cr_assert_eq(how, 0);
  cr_assert_eq(ta_emit_status(&status), TA_OK);
  cr_assert_eq(ta_emit_stop(0), TA_E_TIMEOUT);
  scene_end(&s);
}
