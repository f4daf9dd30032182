/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of emitted events: who called, by which names; which frames are kept or left out, and
 * which memory is never read. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/emit/stacks/modules.h"
#include "agent/emit/stacks/stacks.h"
#include "tests/unit/agent/emit/emit_reported.h"
#include "tests/unit/agent/emit/emit_shapes.h"

enum { MEMORY_BYTES = 4 << 20 };

static struct ta_emit_status status_now(void) {
  struct ta_emit_status status = { .size = sizeof status };

  cr_assert_eq(ta_emit_status(&status), 0);
  return status;
}

/* Names. */

static int inner_line, outer_line;

__attribute__((noinline)) static void inner(void) {
  inner_line = __LINE__ + 1;
  ta_log(0, ta_name_of("key"), "text");
  __asm__ volatile("");
}

__attribute__((noinline)) static void outer(void) {
  outer_line = __LINE__ + 1;
  inner();
  __asm__ volatile("");
}

static void expect_callers(struct ta_emit_config config) {
  char words[200];

  outer();
  snprintf(
      words, sizeof words,
      "UserLog < inner test_emit_stacks.c:%d < outer test_emit_stacks.c:%d < emit_until_reported "
      "emit_reported.c:",
      inner_line, outer_line);
  emit_until_reported(outer, config, words);
}

Test(emit_stacks, an_event_has_the_functions_that_called_it_with_file_and_line) {
  expect_callers((struct ta_emit_config){ .stack_depth = 3 });
}

Test(emit_stacks, so_it_has_by_unwind_tables) {
  expect_callers((struct ta_emit_config){ .stack_depth = 3, .stack_tables = 1 });
}

Test(emit_stacks, a_stack_is_no_deeper_than_asked_for) {
  struct emitted e;

  emit_reported_begin(&e, (struct ta_emit_config){ .stack_depth = 1 });
  outer();
  char *reported = emit_reported_end(&e);
  const char *log = strstr(reported, "UserLog < ");
  cr_assert_not_null(log);
  cr_assert_null(strstr(log + strlen("UserLog < "), " < "));
  free(reported);
}

Test(emit_stacks, without_the_option_there_is_none) {
  struct emitted e;

  emit_reported_begin(&e, (struct ta_emit_config){ 0 });
  outer();
  char *reported = emit_reported_end(&e);
  cr_assert_not_null(strstr(reported, "UserLog"));
  cr_assert_null(strstr(strstr(reported, "UserLog"), " < "));
  free(reported);
}

static void *waits(void *arg) {
  ta_thread_attach(ta_names_of_function((const void *)(uintptr_t)waits));
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_wait_end();
  return arg;
}

static void wait_on_a_thread(void) {
  pthread_t thread;

  pthread_create(&thread, NULL, waits, NULL);
  pthread_join(thread, NULL);
}

Test(emit_stacks, a_thread_is_called_as_the_function_it_runs) {
  emit_until_reported(wait_on_a_thread, (struct ta_emit_config){ 0 }, "GoCreate < waits :0");
  emit_until_reported(wait_on_a_thread, (struct ta_emit_config){ .stack_depth = 1 },
                      "GoBlock < waits test_emit_stacks.c:");
}

/* Logs from a library that is unloaded before the generation ends. */
static void log_from_a_library(void) {
  void *library = dlopen(TT_EMIT_PLUGIN, RTLD_NOW);
  void (*log_from)(void);

  cr_assert_not_null(library, "%s", dlerror());
  *(void **)&log_from = dlsym(library, "log_from_plugin");
  outer();
  emit_end_generation();
  log_from();
  dlclose(library);
}

Test(emit_stacks, a_library_that_is_unloaded_is_still_named) {
  emit_until_reported(log_from_a_library, (struct ta_emit_config){ .stack_depth = 2 },
                      "UserLog < log_from_plugin emit_plugin.c:");
}

/* Files of libraries: a library of another build has the same path and size. */

static void copy_plugin(const char *path, const struct ta_module *of) {
  static unsigned char bytes[1 << 20];
  FILE *from = fopen(TT_EMIT_PLUGIN, "rb"), *to = fopen(path, "wb");
  size_t n = fread(bytes, 1, sizeof bytes, from);

  cr_assert_lt(n, sizeof bytes);
  if (of != NULL) {
    unsigned char *id = memmem(bytes, n, of->build_id, of->build_id_len);
    cr_assert_not_null(id);
    *id ^= 1;
  }
  cr_assert_eq(fwrite(bytes, 1, n, to), n);
  fclose(from);
  fclose(to);
}

static struct ta_module load_plugin(const char *path, void **library, bool *moved) {
  cr_assert_not_null(*library = dlopen(path, RTLD_NOW), "%s", dlerror());
  *moved = ta_modules_look();
  const struct ta_module *m = ta_modules_find((uintptr_t)dlsym(*library, "log_from_plugin"));
  cr_assert_not_null(m);
  return *m;
}

Test(emit_stacks, a_library_that_was_built_anew_is_another_where_it_was) {
  char path[] = "/tmp/test_emit_stacks.XXXXXX";
  void *library;
  bool moved;

  close(mkstemp(path));
  copy_plugin(path, NULL);
  struct ta_module was = load_plugin(path, &library, &moved);
  dlclose(library);
  if (was.build_id_len > 0) copy_plugin(path, &was);
  struct ta_module is = load_plugin(path, &library, &moved);
  if (is.bias == was.bias) cr_assert_eq(moved, was.build_id_len > 0); /* the loader decides */
  dlclose(library);
  unlink(path);
}

/* Emits all kinds of events, with stacks of every depth and samples in between. */

static void every_shape(struct ta_emit_config config) {
  for (size_t i = 0; i < emit_shape_count; i++) {
    struct emitted e;
    emit_reported_begin(&e, config);
    emit_shapes[i].run();
    struct ta_emit_status status = status_now();
    cr_assert_eq(status.lost_stacks, 0);
    cr_assert_eq(status.faults, 0);
    free(emit_reported_end(&e));
  }
}

Test(emit_stacks, every_shape_is_a_trace_of_1_22) {
  every_shape((struct ta_emit_config){ .version = 22, .stack_depth = 128, .samples_hz = 1000 });
}
Test(emit_stacks, every_shape_is_a_trace_of_1_23) {
  every_shape((struct ta_emit_config){ .version = 23, .stack_depth = 2, .stack_tables = 1 });
}
Test(emit_stacks, every_shape_is_a_trace_of_1_25) {
  every_shape((struct ta_emit_config){ .version = 25, .stack_depth = 16 });
}
Test(emit_stacks, every_shape_is_a_trace_of_1_26) {
  every_shape((struct ta_emit_config){ .version = 26, .stack_depth = 16, .samples_hz = 100 });
}

/* The chain of frame pointers: which links are read, and which are not. */

struct link {
  uint64_t next, pc;
};

/* Returns the number of frames that the walk finds from fp on; the stack ends where memory does. */
static unsigned walk(struct link *low, struct link *high, uint64_t fp) {
  static struct ta_thread t;
  uint64_t pcs[TA_FRAMES_MAX];
  ucontext_t context = { 0 };

  t.stack = (struct ta_bounds){ (uintptr_t)low, (uintptr_t)high };
#ifdef __x86_64__
  context.uc_mcontext.gregs[REG_RIP] = 0x5000;
  context.uc_mcontext.gregs[REG_RSP] = (greg_t)low;
  context.uc_mcontext.gregs[REG_RBP] = (greg_t)fp;
#else
  context.uc_mcontext.pc = 0x5000;
  context.uc_mcontext.sp = (uintptr_t)low;
  context.uc_mcontext.regs[29] = fp;
#endif
  unsigned n = ta_frames_of_signal(&t, &context, pcs, 100);
  cr_assert_eq(pcs[0], 0x5001);
  return n;
}

Test(emit_stacks, a_chain_that_is_none_is_not_followed) {
  size_t page = (size_t)getpagesize();
  unsigned char *memory = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  cr_assert_eq(mprotect(memory + page, page, PROT_READ | PROT_WRITE), 0);
  struct link *low = (struct link *)(void *)(memory + page);
  struct link *high = (struct link *)(void *)(memory + 2 * page);
#define AT(link) ((uint64_t)(uintptr_t)(link))

  for (struct link *at = low; at < high; at++) *at = (struct link){ AT(at + 1), 0x6000 };
  cr_expect_eq(walk(low, high, AT(high - 4)), 5, "to the last that is whole");
  cr_expect_eq(walk(low, high, AT(high - 1)), 2);
  cr_expect_eq(walk(low, high, AT(high) - 8), 1, "half of one");
  cr_expect_eq(walk(low, high, AT(high)), 1);
  cr_expect_eq(walk(low, high, AT(low) - 16), 1);
  cr_expect_eq(walk(low, high, 0), 1);
  cr_expect_eq(walk(low, high, 1), 1);
  cr_expect_eq(walk(low, high, UINT64_MAX), 1);
  cr_expect_eq(walk(low, high, UINT64_MAX - 7), 1);
  cr_expect_eq(walk(low, high, AT(low) + 4), 1, "not aligned");
  low[3].next = AT(low + 3);
  cr_expect_eq(walk(low, high, AT(low)), 5, "one that is its own next");
  low[3].next = AT(low);
  cr_expect_eq(walk(low, high, AT(low)), 5, "a ring");
  low[3] = (struct link){ AT(low + 4), 77 };
  cr_expect_eq(walk(low, high, AT(low)), 4, "a pc where nothing can be");
  cr_expect_eq(walk(low, high, AT(low + 4)), 100, "no more than there is room for");
  munmap(memory, 3 * page);
}

#if !defined TC_SANITIZED
/* A thread on a stack of its own: the caller's frame alone is read, unless the agent knows this
 * stack. */

static ucontext_t back, there;
static ta_fiber fiber;

__attribute__((noinline)) static void log_twice(void) {
  ta_log(0, ta_name_of("key"), "text");
  __asm__ volatile("");
}

static void on_a_stack_of_its_own(void) {
  log_twice();
  ta_fiber_switch(0);
  swapcontext(&there, &back);
}

static unsigned frames_on_a_fiber(bool reported_of) {
  enum { STACK_BYTES = 64 << 10 };
  struct emitted e;
  char *stack = malloc(STACK_BYTES);

  emit_reported_begin(&e, (struct ta_emit_config){ .stack_depth = 16 });
  fiber = ta_fiber_create(ta_name_of("fiber"), 0);
  if (reported_of) ta_fiber_stack(fiber, stack, STACK_BYTES);
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = STACK_BYTES;
  makecontext(&there, on_a_stack_of_its_own, 0);
  ta_fiber_switch(fiber);
  swapcontext(&back, &there);
  char *reported = emit_reported_end(&e);
  char *log = strstr(reported, "UserLog"), *end = strchr(log, '\n');
  if (end != NULL) *end = 0;
  unsigned n = 0;
  for (; (log = strstr(log, " < ")) != NULL; log++) n++;
  free(reported);
  free(stack);
  return n;
}

Test(emit_stacks, a_fiber_has_the_stack_that_it_was_said_to_have) {
  cr_assert_eq(frames_on_a_fiber(false), 1);
  cr_assert_geq(frames_on_a_fiber(true), 2);
}
#endif

/* The table. */

Test(emit_stacks, a_stack_is_kept_once_until_there_is_no_room) {
  uint64_t pcs[2] = { 0x5000, 0 };
  bool seen[TA_NAMES_MAX + TA_STACKS_SLOTS] = { 0 };
  unsigned kept = 0, lost = 0;

  cr_assert_eq(ta_stacks_make(), TB_OK);
  for (unsigned i = 0; i < 2 * TA_STACKS_SLOTS; i++) {
    pcs[1] = 0x6000 + i;
    uint32_t id = ta_stacks_put(1, pcs, 2);
    if (id == 0) {
      lost++;
      continue;
    }
    cr_assert(!seen[id]);
    seen[id] = true;
    kept++;
    cr_assert_eq(ta_stacks_put(1, pcs, 2), id);
  }
  cr_assert_geq(kept, TA_STACKS_SLOTS * 3 / 4);
  cr_assert_geq(lost, TA_STACKS_SLOTS);
  cr_assert_eq(atomic_load(&ta_emit.lost_stacks), lost);
  ta_stacks_clear(1);
  cr_assert_neq(ta_stacks_put(1, pcs, 2), 0);
}

static void *put_all(void *arg) {
  uint32_t *ids = arg;

  for (unsigned i = 0; i < 500; i++) ids[i] = ta_stacks_put(0, (uint64_t[]){ 0x7000 + i, i }, 2);
  return NULL;
}

Test(emit_stacks, threads_that_have_the_same_stack_have_one_number) {
  enum { THREADS = 4 };
  static uint32_t ids[THREADS][500];
  pthread_t threads[THREADS];

  cr_assert_eq(ta_stacks_make(), TB_OK);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, put_all, ids[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 1; i < THREADS; i++) cr_assert_arr_eq(ids[i], ids[0], sizeof ids[0]);
}

Test(emit_stacks, a_configuration_that_cannot_be_is_refused_by_name) {
  static const struct {
    struct ta_emit_config config;
    const char *word;
  } wrong[] = {
    { { .stack_depth = 129 }, "stack_depth" },
    { { .size = sizeof(struct ta_emit_config), .stack_depth = 129 }, "stack_depth" },
    { { .samples_hz = 1001 }, "samples_hz" },
    { { .samples_hz = 100, .samples_signal = 9 }, "samples_signal" },
    { { .samples_hz = 100, .samples_signal = -1 }, "samples_signal" },
    { { .samples_hz = 100, .samples_signal = 9999 }, "samples_signal" },
  };

  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct emitted e;
    cr_assert_eq(emit_begin(&e, &wrong[i].config, MEMORY_BYTES), TA_E_CONFIG);
    cr_assert_not_null(strstr(ta_strerror(TA_E_CONFIG), wrong[i].word));
  }
}

Test(emit_stacks, of_a_configuration_no_more_is_read_than_its_size) {
  struct ta_emit_config config = { .size = offsetof(struct ta_emit_config, stack_depth),
                                   .stack_depth = 129 };
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, MEMORY_BYTES), 0);
  cr_assert_eq(emit_end(&e), 0);
  emit_free(&e);
}
