/* SPDX-License-Identifier: Apache-2.0 */
/* E3: calls that make no sense are ignored and counted; a debug build of the agent aborts and
 * names the mistake. E7: a section that has ended takes no event. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/order_text.h"
#include "tests/unit/agent/emit/emit_scene.h"
#include "tests/unit/agent/emit/misuses.h"

static uint64_t misused(void) {
  struct ta_emit_status status = { .size = sizeof status };

  cr_assert_eq(ta_emit_status(&status), 0);
  return status.misused;
}

Test(misuse, is_counted_and_left_out) {
  for (size_t i = 0; i < misuse_count; i++) {
    struct emitted e;
    struct tt_run run = { 0 };
    cr_assert_eq(emit_begin_version(&e, 26), 0);
    ta_thread_attach(0);
    uint64_t before = misused();
    misuses[i].commit();
    cr_expect_eq(misused() - before, 1, "%s: %lu", misuses[i].name, misused() - before);
    cr_assert_eq(emit_end(&e), 0);
    tt_order_bytes(&run, e.trace[0].bytes, e.trace[0].n);
    TT_OK(run);
    tt_run_fini(&run);
    emit_free(&e);
  }
}

struct death {
  int status;
  char said[500]; /* on stderr */
};

static struct death die_of(const char *name) {
  struct death death = { 0 };
  size_t n = 0;
  ssize_t got;
  int ends[2];

  cr_assert_eq(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(TT_MISUSE_DEBUG, "misuse_debug", name, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  while ((got = read(ends[0], death.said + n, sizeof death.said - 1 - n)) > 0) n += (size_t)got;
  close(ends[0]);
  cr_assert_eq(waitpid(child, &death.status, 0), child);
  return death;
}

static void expect_death(const char *name, const char *said) {
  struct death death = die_of(name);

  cr_expect(WIFSIGNALED(death.status) && WTERMSIG(death.status) == SIGABRT, "%s: status %x", name,
            death.status);
  cr_expect(strstr(death.said, "traceagent: misuse: ") != NULL && strstr(death.said, said) != NULL,
            "%s: \"%s\"", name, death.said);
}

Test(misuse, aborts_in_a_debug_build) {
  for (size_t i = 0; i < misuse_count; i++) expect_death(misuses[i].name, misuses[i].said);
}

Test(misuse, an_event_after_leave_aborts_in_a_debug_build) {
  expect_death("written_after_leave", "ta_leave()");
}

Test(misuse, what_fits_and_ends_of_what_began_before_live_in_a_debug_build) {
  static const char *const names[] = { "fit", "begun_before" };

  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct death death = die_of(names[i]);
    cr_expect(WIFEXITED(death.status) && WEXITSTATUS(death.status) == 0, "%s: status %x: %s",
              names[i], death.status, death.said);
  }
}
