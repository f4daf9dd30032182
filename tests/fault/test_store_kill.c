/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 of a process that runs the store, at random moments, recovery included (reliability.md, rows 1 and 2): the
 * acked data is there after the next start, once, byte for byte. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/patience.h"
#include "support/store_child.h"

enum { KILLS = 25, KILLS_FULL = 120 };

static void kill_many(const char *sync, unsigned generations_max) {
  static struct tt_store t;
  uint64_t acked[TT_CHILD_STREAMS] = { 0 };
  int fds[2];
  unsigned seed = 12345 + generations_max, kills = tt_full() ? KILLS_FULL : KILLS;

  tt_store_make(&t);
  t.config.log_file_bytes = 1 << 20;
  t.config.log_group_bytes = 64 << 10;
  t.config.segment_generations_max = generations_max;
  free(t.config.top_sync);
  t.config.top_sync = strdup(sync);
  for (unsigned kill_no = 0; kill_no <= kills; kill_no++) {
    bool last = kill_no == kills;
    uint64_t stop = last ? acked[0] : UINT64_MAX;
    for (int i = 0; i < TT_CHILD_STREAMS; i++)
      if (last && acked[i] + 100 > stop) stop = acked[i] + 100;
    if (last) stop = tt_child_border(stop);
    cr_assert_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
      close(fds[0]);
      tt_child_run(&t, fds[1], stop);
    }
    close(fds[1]);
    /* From the first steps of recovery to some hundred groups later. */
    uint64_t delay = kill_no % 3 == 0 ? (uint64_t)(rand_r(&seed) % 5000000)
                                      : (uint64_t)(rand_r(&seed) % 120000000);
    tt_child_follow(fds[0], last ? 0 : tt_mono_ns() + delay + 1, TT_PATIENCE_S, acked);
    int status;
    if (!last) kill(pid, SIGKILL);
    tt_child_follow(fds[0], 0, TT_PATIENCE_S, acked); /* acks sent before it died */
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    close(fds[0]);
    if (WIFEXITED(status))
      cr_assert_eq(WEXITSTATUS(status), 0, "child %u ended with %d", kill_no, WEXITSTATUS(status));
  }
  tt_child_expect(&t, acked, sync);
  fprintf(stderr, "%u kills, acked up to %" PRIu64 "\n", kills, acked[0]);
  tt_store_remove(&t);
}

Test(store_kill, no_acked_record_is_lost_or_doubled) {
  kill_many("durable", 1);
}

Test(store_kill, nor_at_level_process) {
  kill_many("process", 1);
}

Test(store_kill, nor_where_files_hold_several_generations) {
  kill_many("durable", 5);
}
