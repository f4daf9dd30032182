/* SPDX-License-Identifier: Apache-2.0 */
/* The agent in a program with a seccomp filter, installed before the session or in the middle of
 * it. The program survives, and any trace that arrives is whole. Filters are raw BPF; each case
 * is a process of its own. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/emit/core/fence.h"
#include "agent/host/filter.h"
#include "support/order_text.h"
#include "support/patience.h"
#include "tests/unit/agent/emit/emit_scene.h"

enum { RULES_MAX = 16 };

struct rule {
  unsigned call, action;
};

#define FAILS(error) (SECCOMP_RET_ERRNO | (error))

/* Loads the number; for each rule compares and returns; else allows. The filter applies to all
 * threads that exist. */
static void put_up(const struct rule *rules, size_t n) {
  struct sock_filter code[2 * RULES_MAX + 2];
  unsigned short len = 0;

  code[len++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < n; i++) {
    code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rules[i].call, 0, 1);
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, rules[i].action);
  }
  code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = { len, code };
  cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  cr_assert_eq(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program),
               0, "errno %d", errno);
}

#define PUT_UP(...)                                                                                \
  put_up((struct rule[]){ __VA_ARGS__ }, sizeof(struct rule[]){ __VA_ARGS__ } / sizeof(struct rule))

static void expect_whole(const struct emitted *e, const char *text) {
  for (unsigned i = 0; i < e->traces; i++) {
    struct tt_run run = { 0 };
    char fault[300];
    tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
    tt_order_bytes(&run, e->trace[i].bytes, e->trace[i].n);
    tb_diag_format(&run.diag, fault, sizeof fault);
    cr_assert_eq(run.rc, TB_OK, "%s", fault);
    tt_run_fini(&run);
    if (memmem(e->trace[i].bytes, e->trace[i].n, text, strlen(text)) != NULL) text = "";
  }
  cr_assert_str_eq(text, "", "it is in no trace: %s", text);
}

static void whole_session(bool light) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  cr_assert_eq(atomic_load(&ta_fence_is_light), light);
  ta_log(0, 0, "said");
  emit_end_generation();
  cr_assert_eq(emit_end(&e), 0);
  expect_whole(&e, "said");
  emit_free(&e);
}

Test(seccomp, a_filter_that_kills_for_membarrier_costs_the_light_fence) {
  PUT_UP({ SYS_membarrier, SECCOMP_RET_KILL_PROCESS });
  whole_session(false);
}

Test(seccomp, a_filter_that_kills_the_thread_for_membarrier_costs_the_light_fence) {
  PUT_UP({ SYS_membarrier, SECCOMP_RET_KILL_THREAD });
  whole_session(false);
}

Test(seccomp, a_filter_that_refuses_membarrier_costs_the_light_fence) {
  PUT_UP({ SYS_membarrier, FAILS(EPERM) });
  whole_session(false);
}

/* The filter forbids those calls, among the ones that the agent uses or libc tries for it, that
 * docker's default profile forbids. */
Test(seccomp, a_filter_as_docker_has_it_costs_nothing) {
  PUT_UP({ SYS_clone3, FAILS(ENOSYS) }, { SYS_unshare, FAILS(EPERM) }, { SYS_setns, FAILS(EPERM) },
         { SYS_mount, FAILS(EPERM) }, { SYS_bpf, FAILS(EPERM) },
         { SYS_perf_event_open, FAILS(EPERM) }, { SYS_keyctl, FAILS(EPERM) },
         { SYS_userfaultfd, FAILS(EPERM) });
  whole_session(true);
}

static atomic_int trapped, children;

static void on_signal(int signal) {
  atomic_fetch_add(signal == SIGCHLD ? &children : &trapped, 1);
}

Test(seccomp, the_host_sees_nothing_of_the_child_that_tries) {
  struct sigaction act = { .sa_handler = on_signal };

  cr_assert_eq(sigaction(SIGCHLD, &act, NULL), 0);
  cr_assert_eq(sigaction(SIGSYS, &act, NULL), 0);
  PUT_UP({ SYS_membarrier, SECCOMP_RET_TRAP });
  cr_assert_not(ta_filter_spares(SYS_membarrier, 0, 0, 0));
  cr_assert(ta_filter_spares(SYS_getppid, 0, 0, 0));
  whole_session(false);
  cr_assert_eq(atomic_load(&children), 0);
  cr_assert_eq(atomic_load(&trapped), 0);
  cr_assert_eq(waitpid(-1, NULL, 0), -1);
  cr_assert_eq(errno, ECHILD);
}

Test(seccomp, what_was_found_out_holds_until_there_is_another_filter) {
  PUT_UP({ SYS_bpf, FAILS(EPERM) });
  cr_assert(ta_filter_spares(SYS_membarrier, 0, 0, 0));
  PUT_UP({ SYS_membarrier, SECCOMP_RET_KILL_PROCESS });
  cr_assert_not(ta_filter_spares(SYS_membarrier, 0, 0, 0));
}

Test(seccomp, where_no_child_can_be_made_nothing_is_tried) {
  PUT_UP({ SYS_clone, FAILS(EAGAIN) }, { SYS_membarrier, SECCOMP_RET_KILL_PROCESS });
  cr_assert_not(ta_filter_spares(SYS_membarrier, 0, 0, 0));
#ifdef __SANITIZE_ADDRESS__
  _exit(0); /* the search for leaks creates a child, too */
#endif
}

/* The filter is installed while threads write. */

static char logged[200];

static void log_line(void *self, int level, const char *text) {
  (void)self;
  (void)level;
  strncat(logged, text, sizeof logged - 1);
}

static atomic_bool over;

static void *write_on(void *self) {
  while (!atomic_load(&over)) {
    ta_region_begin(ta_name_of("region"), 0);
    ta_region_end();
    sched_yield();
  }
  return self;
}

static void in_the_middle(unsigned action) {
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct emitted e = { 0 };
  struct ta_outlet out = emit_outlet(&e);
  struct ta_emit_status status = { .size = sizeof status };
  pthread_t thread;

  out.log = log_line;
  cr_assert_eq(ta_emit_start_to(&out, &config, 4 << 20), TA_OK);
  cr_assert(atomic_load(&ta_fence_is_light));
  ta_log(0, 0, "said before");
  emit_end_generation();
  cr_assert_eq(pthread_create(&thread, NULL, write_on, NULL), 0);
  ta_log(0, 0, "said too late");
  PUT_UP({ SYS_membarrier, action });
  cr_assert_eq(ta_emit_sync(TT_PATIENCE_MS), TA_OK);
  cr_assert_eq(ta_emit_status(&status), TA_OK);
  cr_assert_eq(status.lost_generations, 1);
  cr_assert_eq(status.generations, 2);
  cr_assert_not_null(strstr(logged, "membarrier"));
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 1);
  expect_whole(&e, "said before");
  for (unsigned i = 0; i < e.traces; i++)
    cr_assert_null(memmem(e.trace[i].bytes, e.trace[i].n, "said too late", 13));
  emit_free(&e);

  struct emitted other = { 0 };
  out = emit_outlet(&other);
  cr_assert_eq(ta_emit_start_to(&out, &config, 4 << 20), TA_E_OFF);
  cr_assert_not_null(strstr(ta_strerror(TA_E_OFF), "membarrier"));
  atomic_store(&over, true);
  pthread_join(thread, NULL);
}

Test(seccomp, a_filter_that_comes_and_kills_for_membarrier_ends_the_session) {
  in_the_middle(SECCOMP_RET_KILL_PROCESS);
}

Test(seccomp, a_filter_that_comes_and_refuses_membarrier_ends_the_session) {
  in_the_middle(FAILS(EPERM));
}

/* Samples. */

static void no_samples(unsigned call, unsigned action) {
  struct ta_emit_config config = { .samples_hz = 100 };
  struct emitted e = { 0 };

  PUT_UP({ call, action });
  cr_assert_eq(emit_begin(&e, &config, 4 << 20), TA_E_CONFIG);
  cr_assert_not_null(strstr(ta_strerror(TA_E_CONFIG), "timer_create"));
  whole_session(true);
}

Test(seccomp, samples_are_refused_where_a_timer_would_kill) {
  no_samples(SYS_timer_create, SECCOMP_RET_KILL_PROCESS);
}

Test(seccomp, samples_are_refused_where_a_timer_cannot_be_set) {
  no_samples(SYS_timer_settime, SECCOMP_RET_KILL_PROCESS);
}

Test(seccomp, samples_are_refused_where_there_are_no_timers) {
  no_samples(SYS_timer_create, FAILS(EPERM));
}
