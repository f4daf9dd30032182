/* SPDX-License-Identifier: Apache-2.0 */
/* Every public function with arguments that make no sense: NULL, zeroed structs, numbers that were
 * never returned, sizes of 0 and SIZE_MAX. The host must survive, and the trace must stay readable.
 *
 * All calls are in one list. The list runs in a child without a session, with a session, and in
 * a hold. The child writes to shared memory which call it makes, so that a crash names its call.
 * A public function that is missing from the list fails the test. */
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/emit/events/experiments.h"
#include "support/order_text.h"
#include "tests/unit/agent/emit/emit_scene.h"
#include "tests/unit/agent/forward_scene.h"
#include "traceexperiment.h"
#include "traceprobe.h"

enum { FUNCTIONS_MAX = 200, TEXT_BYTES = 400 };
enum mode { WITHOUT, WITHIN, IN_HOLD, MODES };
static const char *const mode_names[MODES] = { "without a session", "in a session", "in a hold" };

struct shared {
  char now[TEXT_BYTES], fault[TEXT_BYTES];
  unsigned called;
  char name[FUNCTIONS_MAX][40];
};
static struct shared *shared;
static enum mode mode;
static char dir[] = "/tmp/tt-public-XXXXXX";

static void note(const char *function, const char *call) {
  snprintf(shared->now, sizeof shared->now, "%s", call);
  for (unsigned i = 0; i < shared->called; i++)
    if (strcmp(shared->name[i], function) == 0) return;
  if (shared->called == FUNCTIONS_MAX) abort();
  snprintf(shared->name[shared->called++], sizeof *shared->name, "%s", function);
}

static void fail(const char *what, long long is, long long wanted) {
  if (shared->fault[0] == '\0')
    snprintf(shared->fault, sizeof shared->fault, "%.200s: %s is %lld, not %lld", shared->now, what,
             is, wanted);
}

static uint64_t misused(void) {
  struct ta_emit_status status = { .size = sizeof status };

  return ta_emit_status(&status) == TA_OK ? status.misused : 0;
}

/* CALL only calls. WANT expects the answer `wanted`. COUNTED expects that the call does nothing, and that a session counts it
 * as misused. In a hold, every call counts that is not allowed in a hold. */
#define CALL(function, ...) (note(#function, #function #__VA_ARGS__), function __VA_ARGS__)
#define WANT(wanted, function, ...)                                                                \
  do {                                                                                             \
    long long is_ = (long long)CALL(function, __VA_ARGS__);                                        \
    if (is_ != (wanted)) fail("its answer", is_, wanted);                                          \
  } while (0)
#define COUNTED(function, ...)                                                                     \
  do {                                                                                             \
    uint64_t before_ = misused();                                                                  \
    CALL(function, __VA_ARGS__);                                                                   \
    long long more_ = (long long)(misused() - before_);                                            \
    if (more_ != (mode != WITHOUT)) fail("the count of misused", more_, mode != WITHOUT);          \
  } while (0)

static ta_forward *open_stream(void) {
  struct ta_forward_config config = { .server = "127.0.0.1:9", .certs = dir, .service = "s" };
  ta_forward *f = NULL;

  WANT(TA_OK, ta_forward_open, (&config, &f));
  return f;
}

static void forward(void) {
  struct ta_forward_config zeroed = { 0 }, odd = { .size = 1 }, huge = { .size = SIZE_MAX };
  struct ta_forward_status status = { .size = SIZE_MAX }, none = { 0 };
  ta_forward *f = (ta_forward *)(void *)&status;

  WANT(TA_E_MISUSE, ta_forward_open, (NULL, NULL));
  WANT(TA_E_MISUSE, ta_forward_open, (&zeroed, NULL));
  WANT(TA_E_CONFIG, ta_forward_open, (NULL, &f));
  if (f != NULL) fail("the stream of a failed open", 1, 0);
  WANT(TA_E_CONFIG, ta_forward_open, (&zeroed, &f));
  WANT(TA_E_CONFIG, ta_forward_open, (&odd, &f));
  WANT(TA_E_CONFIG, ta_forward_open, (&huge, &f));
  struct ta_forward_config greedy = {
    .server = "127.0.0.1:9", .certs = dir, .service = "s", .spool_bytes = UINT64_MAX
  };
  WANT(TA_E_NOMEM, ta_forward_open, (&greedy, &f));

  WANT(TA_E_MISUSE, ta_forward_write, (NULL, NULL, 0));
  WANT(TA_E_MISUSE, ta_forward_write, (NULL, "", SIZE_MAX));
  WANT(TA_E_MISUSE, ta_forward_sync, (NULL, INT64_MAX));
  WANT(TA_E_MISUSE, ta_forward_snap, (NULL, UINT64_MAX));
  WANT(TA_E_MISUSE, ta_forward_status, (NULL, NULL));
  WANT(TA_E_MISUSE, ta_forward_status, (NULL, &none));
  CALL(ta_forward_finish, (NULL));
  WANT(TA_OK, ta_forward_close, (NULL, INT64_MAX));

  f = open_stream();
  if (f == NULL) return;
  WANT(TA_OK, ta_forward_write, (f, NULL, 0));
  WANT(TA_E_MISUSE, ta_forward_write, (f, NULL, 1));
  WANT(TA_E_MISUSE, ta_forward_write, (f, "", SIZE_MAX));
  WANT(TA_OK, ta_forward_sync, (f, INT64_MAX));
  WANT(TA_OK, ta_forward_sync, (f, INT64_MIN));
  WANT(TA_E_CONFIG, ta_forward_snap, (f, UINT64_MAX));
  WANT(TA_E_MISUSE, ta_forward_status, (f, NULL));
  WANT(TA_OK, ta_forward_status, (f, &none));
  WANT(TA_OK, ta_forward_status, (f, &status));
  ta_forward_close(f, 0);
}

static void emit(void) {
  struct ta_emit_config zeroed = { 0 }, huge = { .size = SIZE_MAX }, wrong = { .version = 7 };
  struct ta_forward_config where = { 0 };
  struct ta_emit_status none = { 0 }, all = { .size = SIZE_MAX };
  struct ta_forward_status no_stream = { 0 }, stream = { .size = SIZE_MAX };
  int open = mode == WITHOUT ? TA_E_CONFIG : TA_E_BUSY, there = mode == WITHOUT ? TA_E_OFF : TA_OK;

  WANT(open, ta_emit_start, (NULL, NULL));
  WANT(open, ta_emit_start, (&where, &zeroed));
  WANT(open, ta_emit_start, (&where, &huge));
  WANT(TA_E_CONFIG, ta_emit_start, (&where, &wrong));
  if (mode != IN_HOLD) { /* it would wait for the hold */
    WANT(there, ta_emit_sync, (INT64_MAX));
    WANT(there, ta_emit_sync, (INT64_MIN));
  }
  WANT(mode == WITHOUT ? TA_E_OFF : TA_E_CONFIG, ta_emit_snap, (UINT64_MAX));
  WANT(TA_E_MISUSE, ta_emit_status, (NULL));
  WANT(there, ta_emit_status, (&none));
  WANT(there, ta_emit_status, (&all));
  WANT(TA_E_MISUSE, ta_emit_forward_status, (NULL));
  WANT(there, ta_emit_forward_status, (&no_stream));
  WANT(there, ta_emit_forward_status, (&stream));
  if (mode == WITHOUT) WANT(TA_E_OFF, ta_emit_stop, (INT64_MAX));
  WANT(0, ta_name_of, (NULL));
  WANT(0, ta_name_of, (""));
  CALL(ta_strerror, (INT_MIN));
  CALL(ta_strerror, (INT_MAX));
  CALL(ta_version, ());
}

static void threads_and_fibers(void) {
  static char memory[64];
  ta_fiber fiber = mode == IN_HOLD ? 0 : ta_fiber_create(UINT32_MAX, INT_MIN);

  CALL(ta_thread_attach, (0));
  CALL(ta_thread_attach, (UINT32_MAX));
  CALL(ta_wait_begin_for, (UINT32_MAX, NULL));
  CALL(ta_wait_release, (NULL, INT_MIN));
  CALL(ta_wait_end, ());
  CALL(ta_wait_begin_for, (UINT32_MAX, (const void *)UINTPTR_MAX));
  CALL(ta_wait_release, ((const void *)UINTPTR_MAX, INT_MAX));
  CALL(ta_wait_end, ());
  CALL(ta_wait_begin, (UINT32_MAX));
  CALL(ta_wait_end, ());
  COUNTED(ta_wait_end, ());
  CALL(ta_syscall_begin, ());
  CALL(ta_syscall_end, ());
  COUNTED(ta_syscall_end, ());
  CALL(ta_fiber_create, (UINT32_MAX, 1));
  CALL(ta_fiber_self, ());
  COUNTED(ta_fiber_stack, (0, NULL, 0));
  COUNTED(ta_fiber_stack, (UINT64_MAX, memory, sizeof memory));
  if (fiber != 0) {
    COUNTED(ta_fiber_stack, (fiber, NULL, SIZE_MAX));
    COUNTED(ta_fiber_stack, (fiber, NULL, 1));
    COUNTED(ta_fiber_stack, (fiber, memory, SIZE_MAX));
    COUNTED(ta_fiber_stack, (fiber, memory, SIZE_MAX - (uintptr_t)memory));
  }
  CALL(ta_fiber_stack, (fiber, NULL, 0));
  COUNTED(ta_fiber_switch, (1));
  COUNTED(ta_fiber_switch, (UINT64_MAX));
  COUNTED(ta_fiber_unblock, (0));
  COUNTED(ta_fiber_unblock, (UINT64_MAX));
  COUNTED(ta_fiber_block, (UINT32_MAX));
  COUNTED(ta_fiber_yield, (UINT32_MAX));
  COUNTED(ta_fiber_end, ());
}

static void collections(void) {
  COUNTED(ta_gc_end, ());
  CALL(ta_gc_begin, ());
  COUNTED(ta_gc_begin, ());
  COUNTED(ta_gc_sweep_end, (UINT64_MAX, UINT64_MAX));
  CALL(ta_gc_sweep_begin, ());
  COUNTED(ta_gc_sweep_begin, ());
  COUNTED(ta_gc_assist_end, ());
  CALL(ta_gc_assist_begin, ());
  COUNTED(ta_gc_assist_begin, ());
  CALL(ta_gc_sweep_end, (UINT64_MAX, UINT64_MAX));
  CALL(ta_gc_assist_end, ());
  CALL(ta_gc_end, ());
}

static void marks(void) {
  COUNTED(ta_region_end, ());
  CALL(ta_region_begin, (UINT32_MAX, UINT64_MAX));
  CALL(ta_region_end, ());
  CALL(ta_task_begin, (UINT32_MAX, UINT64_MAX));
  CALL(ta_task_end, (0));
  CALL(ta_task_end, (UINT64_MAX));
  COUNTED(ta_log, (0, 0, NULL));
  COUNTED(ta_log, (UINT64_MAX, UINT32_MAX, NULL));
  CALL(ta_log, (UINT64_MAX, UINT32_MAX, ""));
  CALL(ta_label, (UINT32_MAX));
  COUNTED(ta_pause_end, ());
  CALL(ta_pause_begin, (UINT32_MAX));
  CALL(ta_pause_end, ());
  CALL(ta_workers, (0));
  CALL(ta_workers, (UINT_MAX));
  CALL(ta_heap_alloc, (UINT64_MAX));
  CALL(ta_heap_goal, (UINT64_MAX));
}

static void experiments(void) {
  static const char spec[] = "experiment Odd\nevent Step ctx=M of_value of_seq\n"
                             "event Blob ctx=M it_blob\nevent Text ctx=M a_string b_stack c_g\n";
  enum { STEP, BLOB, TEXT, EVENTS };
  ta_event event[EVENTS];
  ta_experiment number = 0;
  ta_sequence sequence = { { 0 } };
  ta_name stream = ta_name_of("stream");

  WANT(TA_E_CONFIG, ta_experiment_register, (NULL, NULL, NULL, 0));
  WANT(TA_E_CONFIG, ta_experiment_register, (NULL, NULL, event, UINT_MAX));
  WANT(TA_E_CONFIG, ta_experiment_register, ("", NULL, NULL, 0));
  WANT(TA_E_CONFIG, ta_experiment_register, (spec, &number, NULL, EVENTS));
  WANT(TA_E_CONFIG, ta_experiment_register, (spec, &number, event, UINT_MAX));
  WANT(TA_E_CONFIG, ta_experiment_register_abi, (UINT_MAX, spec, &number, event, EVENTS));
  WANT(TA_OK, ta_experiment_register, (spec, &number, event, EVENTS));
  for (unsigned e = 0; e <= UINT8_MAX; e++)
    if (e < event[STEP] || e > event[TEXT]) {
      CALL(ta_experiment_emit, ((ta_event)e, UINT64_MAX, 0, 0, 0));
      CALL(ta_emit_blob, ((ta_event)e, stream, "x", 1, 0, 0, 0, 0));
    }
  COUNTED(ta_experiment_emit, (event[STEP], 1, 0, 0, 0));
  COUNTED(ta_experiment_emit, (event[STEP], 1, 7, 0, 0));
  COUNTED(ta_experiment_emit, (event[STEP], 1, UINT64_MAX, 0, 0));
  CALL(ta_experiment_emit, (event[STEP], 1, TA_SEQUENCE(&sequence), 0, 0));
  CALL(ta_experiment_emit, (event[TEXT], UINT64_MAX, UINT64_MAX, UINT64_MAX, 0));
  COUNTED(ta_emit_blob, (event[BLOB], stream, NULL, 1, 0, 0, 0, 0));
  COUNTED(ta_emit_blob, (event[BLOB], stream, "x", SIZE_MAX, 0, 0, 0, 0));
  COUNTED(ta_emit_blob, (event[BLOB], UINT32_MAX, "x", 1, 0, 0, 0, 0));
  COUNTED(ta_emit_blob, (event[STEP], stream, "x", 1, 0, 0, 0, 0));
  CALL(ta_emit_blob, (event[BLOB], stream, NULL, 0, 0, 0, 0, 0));
  COUNTED(ta_experiment_write, (0, stream, "x", 1));
  COUNTED(ta_experiment_write, (UINT8_MAX, stream, "x", 1));
  COUNTED(ta_experiment_write, (number, stream, NULL, 1));
  COUNTED(ta_experiment_write, (number, stream, "x", SIZE_MAX));
  COUNTED(ta_experiment_write, (number, UINT32_MAX, "x", 1));
  CALL(ta_experiment_write, (number, stream, NULL, 0));
  CALL(ta_hold_end, ());
  if (mode == IN_HOLD) CALL(ta_hold_begin, ());
  CALL(ta_hold_begin, ());
  CALL(ta_hold_end, ());
  CALL(ta_memory_tell, (TA_OBJECT_ALLOC, NULL, SIZE_MAX, UINT32_MAX));
  CALL(ta_memory_tell, (TA_SPAN_ALLOC, (void *)UINTPTR_MAX, SIZE_MAX, 0));
  CALL(ta_memory_tell, (TA_STACK_ALLOC, NULL, SIZE_MAX, 0));
  COUNTED(ta_memory_tell, ((enum ta_memory)(TA_STACK_FREE + 1), NULL, 0, 0));
  COUNTED(ta_memory_tell, ((enum ta_memory)INT_MAX, NULL, 0, 0));
}

static void look(void *self, const struct ta_call *call) {
  (void)self;
  (void)call;
}

static void pack(void) {}

static void probes(void) {
  static struct ta_tracepoint empty;
  static const struct ta_trace_spec one = { "experiment M\nevent e ctx=M a_value\n", 1 };
  static struct ta_tracepoint at = {
    .module = "M", .name = "e", .pack = pack, .event = 7, .spec = &one
  };
  struct ta_probe probe = { 0 };
  struct ta_probe_group group = { 0 };
  ta_profile *profile = NULL;
  ta_chrome *chrome = NULL;
  ta_expect *x = NULL;

  WANT(TA_E_MISUSE, ta_unlock, ());
  WANT(TA_E_MISUSE, ta_probe_detach, (&probe));
  WANT(TA_E_MISUSE, ta_probe_attach, (NULL, &at, &probe, pack, NULL));
  WANT(TA_OK, ta_profile_open, (1, &profile));
  WANT(TA_E_MISUSE, ta_profile_open, (1, NULL));
  WANT(TA_E_NOMEM, ta_profile_open, (UINT_MAX, &profile));
  WANT(TA_OK, ta_profile_open, (1, &profile));
  WANT(TA_E_MISUSE, ta_chrome_open, (NULL, NULL));
  WANT(TA_E_MISUSE, ta_chrome_open, (NULL, &chrome));
  WANT(TA_E_FILE, ta_chrome_open, ("/", &chrome));
  WANT(TA_E_MISUSE, ta_expect_open, (0, NULL));
  WANT(TA_OK, ta_expect_open, (1, &x));

  WANT(TA_OK, ta_lock, ());
  WANT(TA_E_MISUSE, ta_lock, ());
  WANT(TA_E_MISUSE, ta_probe_detach, (NULL));
  WANT(TA_E_MISUSE, ta_probe_detach, (&probe));
  WANT(TA_E_MISUSE, ta_probe_group_add, (NULL, NULL));
  WANT(TA_E_MISUSE, ta_probe_group_add, (&group, NULL));
  WANT(TA_E_MISUSE, ta_probe_group_add, (NULL, &probe));
  WANT(TA_E_MISUSE, ta_probe_group_add, (&group, &probe));
  WANT(TA_E_MISUSE, ta_probe_group_done, (NULL));
  WANT(TA_E_MISUSE, ta_probe_attach, (NULL, NULL, NULL, NULL, NULL));
  WANT(TA_E_MISUSE, ta_probe_attach, (NULL, NULL, &probe, pack, NULL));
  WANT(TA_E_MISUSE, ta_probe_attach, (NULL, &at, NULL, pack, NULL));
  WANT(TA_E_MISUSE, ta_probe_attach, (NULL, &at, &probe, NULL, NULL));
  WANT(TA_E_MISUSE, ta_call_attach, (NULL, NULL, NULL, NULL, NULL));
  WANT(TA_E_MISUSE, ta_call_attach, (NULL, &empty, &probe, look, NULL));
  WANT(TA_E_MISUSE, ta_call_attach, (NULL, &at, &probe, NULL, NULL));
  WANT(TA_E_MISUSE, ta_record_attach, (NULL, NULL, NULL));
  WANT(TA_E_MISUSE, ta_record_attach, (NULL, &empty, &probe));
  WANT(TA_E_MISUSE, ta_record_attach, (NULL, &at, NULL));
  WANT(TA_E_MISUSE, ta_record_event_attach, (NULL, NULL, NULL));
  WANT(TA_E_MISUSE, ta_record_event_attach, (NULL, &empty, &probe));
  WANT(TA_E_MISUSE, ta_record_event_attach, (NULL, &at, &probe));
  WANT(TA_E_MISUSE, ta_profile_attach, (NULL, NULL, NULL, NULL));
  WANT(TA_E_MISUSE, ta_profile_attach, (NULL, &at, &probe, NULL));
  WANT(TA_E_MISUSE, ta_profile_attach, (NULL, NULL, &probe, profile));
  WANT(TA_E_MISUSE, ta_chrome_attach, (NULL, &at, &probe, NULL));
  WANT(TA_E_MISUSE, ta_expect_attach, (NULL, &at, &probe));
  WANT(TA_E_MISUSE, ta_expect_attach, (x, NULL, NULL));
  WANT(TA_OK, ta_unlock, ());

  WANT(0, ta_probe_next, (NULL));
  WANT(0, ta_probe_next, (&probe));
  WANT(TA_E_MISUSE, ta_profile_write, (NULL, NULL));
  WANT(TA_E_MISUSE, ta_profile_write, (profile, NULL));
  WANT(TA_E_FILE, ta_profile_write, (profile, "/"));
  CALL(ta_profile_close, (NULL));
  WANT(TA_OK, ta_chrome_close, (NULL));
  CALL(ta_expect_name, (NULL));
  WANT(TA_E_MISUSE, ta_expect_pause, (NULL, NULL, NULL));
  WANT(TA_E_MISUSE, ta_expect_pause, (x, NULL, NULL));
  WANT(TA_E_MISUSE, ta_expect_event, (NULL, NULL, NULL));
  WANT(TA_E_MISUSE, ta_expect_event, (x, "main", NULL));
  CALL(ta_expect_go, (NULL));
  CALL(ta_expect_go, (x));
  WANT(TA_E_MISUSE, ta_expect_end, (NULL));
  CALL(ta_expect_fault, (NULL));
  WANT(TA_OK, ta_expect_close, (NULL));
  ta_expect_close(x);
  ta_profile_close(profile);
}

static void passing(void) {
  static struct ta_tracepoint empty;
  struct ta_call zeroed = { 0 }, no_args = { .module = "m", .name = "e", .n = 3 };
  struct ta_passing here = { 0 };
  struct ta_probe probe = { 0 };
  char text[8];

  WANT(0, ta_call_text, (NULL, NULL, SIZE_MAX));
  WANT(0, ta_call_text, (NULL, text, sizeof text));
  WANT(0, ta_call_text, (&zeroed, text, SIZE_MAX));
  WANT(0, ta_call_text, (&no_args, text, sizeof text));
  WANT(0, ta_call_text, (&zeroed, text, 0));
  no_args.n = 0;
  WANT(5, ta_call_text, (&no_args, text, SIZE_MAX));
  CALL(ta_passing_end, (NULL));
  CALL(ta_passing_end, (&here));
  CALL(ta_passing_begin, (NULL, NULL));
  CALL(ta_passing_begin, (NULL, &here));
  CALL(ta_passing_end, (&here));
  CALL(ta_passing_begin, (&empty, &here));
  CALL(ta_passing_end, (&here));
  CALL(ta_call_run, (NULL, NULL));
  CALL(ta_call_run, (&probe, NULL));
  ta_lock();
  WANT(TA_OK, ta_unlock, ()); /* no call is left inside, or this would wait for ever */
}

/* Runs in the child. Returns its exit code: 0 if every call answered as expected. */
static int run_all(void) {
  struct ta_emit_config config = { .generation_ms = 60000, .stack_depth = 8, .allocfree = 1 };
  static struct emitted e;

  if (mode != WITHOUT && emit_begin(&e, &config, 4 << 20) != 0) return 2;
  if (mode == IN_HOLD) ta_hold_begin();
  forward();
  emit();
  if (mode != IN_HOLD) threads_and_fibers(), marks(), collections();
  experiments();
  probes();
  passing();
  CALL(ta_thread_detach, ());
  CALL(ta_thread_detach, ());
  if (mode == WITHOUT) return shared->fault[0] != '\0';
  if (emit_end(&e) != 0) return 3;
  for (unsigned i = 0; i < e.traces; i++) {
    struct tt_run run = { 0 };
    tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
    tt_order_bytes(&run, e.trace[i].bytes, e.trace[i].n);
    snprintf(shared->now, sizeof shared->now, "the trace");
    if (run.rc != TB_OK) {
      tb_diag_format(&run.diag, shared->fault, sizeof shared->fault);
      return 4;
    }
    tt_run_fini(&run);
  }
  emit_free(&e);
  return shared->fault[0] != '\0';
}

static void share(void) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  cr_assert_neq(shared, MAP_FAILED);
  static const char *const variables[] = { "SERVER",    "CERTS",   "SERVICE",  "INSTANCE",
                                           "SPOOL_DIR", "DISABLE", "RECORD_MS" };
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    char name[64];
    snprintf(name, sizeof name, "TRACEAGENT_%s", variables[i]);
    unsetenv(name);
  }
  cr_assert_not_null(mkdtemp(dir));
  tt_certs_make(dir);
}

static void expect_every_public_function(void) {
  FILE *list = fopen(TT_PUBLIC_NAMES, "re");
  char name[80];

  cr_assert_not_null(list);
  while (fscanf(list, "%79s", name) == 1) {
    bool called = strncmp(name, "ta_trace_abi", 12) == 0; /* a variable */
    for (unsigned i = 0; i < shared->called; i++)
      if (strcmp(shared->name[i], name) == 0) called = true;
    cr_expect(called, "%s is public, and no call of it stands here", name);
  }
  fclose(list);
}

Test(public_calls, none_crashes_the_host_whatever_it_is_given) {
  share();
  for (mode = WITHOUT; mode < MODES; mode++) {
    pid_t child = fork();
    int status = 0;
    if (child == 0) _exit(run_all());
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(!WIFSIGNALED(status), "%s: %s: signal %d", mode_names[mode], shared->now,
              WTERMSIG(status));
    cr_expect(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "%s: %s, at %s (%d)",
              mode_names[mode], shared->fault, shared->now, WEXITSTATUS(status));
    shared->fault[0] = '\0';
  }
  expect_every_public_function();
  remove_certs(dir);
  munmap(shared, sizeof *shared);
}
