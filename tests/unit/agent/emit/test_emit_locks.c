/* SPDX-License-Identifier: Apache-2.0 */
/* The trace names the lock that a wait is for, in the string of the wait's reason. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "agent/emit/events/locks.h"
#include "agent/emit/events/waiters.h"
#include "online/event/locks.h"
#include "support/caller.h"
#include "tests/unit/agent/emit/emit_reported.h"

enum { MANY = 100000, WAITS_MAX = MANY + 2 };

static struct emitted emitted;
static struct {
  struct tb_mem mem;
  struct to_locks locks;
  uint64_t missed;
  size_t named, waits; /* named: locks in all generations */
  struct wait {
    char reason[32], name[32];
    uint64_t object; /* 0: none */
    int64_t holder;
    uint64_t string;
  } wait[WAITS_MAX];
} reported;

static void copy(char *out, size_t room, struct to_string text) {
  snprintf(out, room, "%.*s", (int)text.len, text.data);
}

static void take_wait(const struct to_generation *gen, uint64_t string) {
  struct wait *wait = &reported.wait[reported.waits++];
  const struct to_lock *lock = to_locks_find(&reported.locks, string);
  struct to_string text;

  cr_assert_leq(reported.waits, WAITS_MAX);
  cr_assert(to_generation_string(gen, string, &text));
  *wait = (struct wait){ .string = string, .holder = TO_NONE };
  copy(wait->reason, sizeof wait->reason, text);
  if (lock == NULL) return;
  wait->object = lock->object;
  wait->holder = lock->holder;
  copy(wait->name, sizeof wait->name, lock->name);
}

static tb_rc take(void *self, const struct to_generation *gen, const struct to_event *ev,
                  size_t n) {
  (void)self;
  for (; n > 0; ev++, n--) {
    if (ev->type == TW_EV_SYNC && gen != NULL) {
      cr_assert_eq(to_locks_generation(&reported.locks, gen), TB_OK);
      reported.missed += reported.locks.missed;
      reported.named += reported.locks.n;
    }
    if (ev->type == TW_EV_GO_BLOCK) take_wait(gen, ev->args[0]);
  }
  return TB_OK;
}

static void begin(unsigned version) {
  struct ta_emit_config config = { .size = sizeof config,
                                   .version = version,
                                   .generation_ms = 60000,
                                   .generation_bytes = UINT64_C(1) << 40 };

  cr_assert_eq(emit_begin(&emitted, &config, 64 << 20), 0);
}

static void end(void) {
  tb_mem_init(&reported.mem, tb_mem_libc, NULL, SIZE_MAX);
  to_locks_init(&reported.locks, &reported.mem);
  emit_end_and_read(&emitted, (struct to_event_sink){ &reported, take });
  to_locks_fini(&reported.locks);
  cr_assert_eq(reported.mem.bytes, 0);
}

static void wait_for(ta_name reason, const void *object) {
  ta_wait_begin_for(reason, object);
  ta_wait_end();
}

static void expect(size_t i, const char *reason, const void *object, int64_t holder) {
  const struct wait *wait = &reported.wait[i];

  cr_assert_str_eq(wait->reason, reason, "line %d: wait %zu: %s", tt_caller, i, wait->reason);
  cr_assert_eq(wait->object, (uintptr_t)object, "line %d: wait %zu", tt_caller, i);
  cr_assert_eq(wait->holder, holder, "line %d: wait %zu", tt_caller, i);
}
#define expect(...) TT_CALL(expect(__VA_ARGS__))

Test(emit_locks, waits_for_one_lock_have_one_string_and_the_text_of_their_reason) {
  static char lock, other;

  begin(26);
  wait_for(TA_WAIT_MUTEX, &lock);
  wait_for(TA_WAIT_MUTEX, &other);
  wait_for(TA_WAIT_MUTEX, &lock);
  wait_for(TA_WAIT_COND, &lock);
  wait_for(ta_name_of("quota"), &other);
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_wait_end();
  wait_for(TA_WAIT_MUTEX, NULL);
  end();
  cr_assert_eq(reported.waits, 7);
  expect(0, "sync", &lock, TO_NONE);
  expect(1, "sync", &other, TO_NONE);
  expect(2, "sync", &lock, TO_NONE);
  expect(3, "sync (condition)", &lock, TO_NONE);
  expect(4, "quota", &other, TO_NONE);
  expect(5, "sync", NULL, TO_NONE);
  expect(6, "sync", NULL, TO_NONE);
  cr_assert_eq(reported.named, 4);
  cr_assert_eq(reported.wait[0].string, reported.wait[2].string);
  cr_assert_eq(reported.wait[5].string, TA_WAIT_MUTEX);
  cr_assert_eq(reported.missed, 0);
}

Test(emit_locks, each_generation_names_its_own_locks) {
  static char lock, other;

  begin(26);
  wait_for(TA_WAIT_MUTEX, &lock);
  emit_end_generation();
  wait_for(TA_WAIT_MUTEX, &other);
  emit_end_generation();
  emit_end_generation();
  wait_for(TA_WAIT_MUTEX, &lock);
  end();
  cr_assert_eq(reported.named, 3);
  expect(0, "sync", &lock, TO_NONE);
  expect(1, "sync", &other, TO_NONE);
  expect(2, "sync", &lock, TO_NONE);
}

Test(emit_locks, a_lock_and_each_of_its_holders_are_told_apart) {
  static char lock;
  static const uint32_t holder[] = { 71, 72, 71, 0 };

  begin(26);
  for (int i = 0; i < 4; i++) {
    ta_wait_begin_in(
        0, TA_WAIT_MUTEX,
        (struct ta_waited_for){ .at = &lock, .object = (uintptr_t)&lock, .holder = holder[i] });
    ta_wait_end();
  }
  end();
  cr_assert_eq(reported.named, 3);
  for (size_t i = 0; i < 4; i++) expect(i, "sync", &lock, holder[i] == 0 ? TO_NONE : holder[i]);
}

/* The lock has the name of its symbol as soon as the symbol has been looked up. */
static char table_lock_of_this_test[24];

Test(emit_locks, a_lock_in_the_program_has_its_name) {
  for (bool named = false; !named;) {
    memset(&reported, 0, sizeof reported);
    begin(26);
    wait_for(TA_WAIT_MUTEX, &table_lock_of_this_test[16]);
    end();
    named = strncmp(reported.wait[0].name, "table_lock", 10) == 0;
    cr_assert(named || strstr(reported.wait[0].name, "+0x") != NULL, "%s", reported.wait[0].name);
  }
  cr_assert_str_eq(reported.wait[0].name, "table_lock_of_this_test+0x10");
  expect(0, "sync", &table_lock_of_this_test[16], TO_NONE);
}

Test(emit_locks, of_a_hundred_thousand_locks_the_first_are_named_and_the_rest_counted) {
  static char lock[MANY];

  begin(26);
  for (size_t i = 0; i < MANY; i++) wait_for(TA_WAIT_MUTEX, &lock[i]);
  wait_for(TA_WAIT_MUTEX, &lock[0]);
  emit_end_generation();
  wait_for(TA_WAIT_MUTEX, &lock[MANY - 1]);
  end();
  cr_assert_eq(reported.waits, MANY + 2);
  cr_assert_eq(reported.named, TA_LOCKS_MAX + 1);
  cr_assert_eq(reported.missed, MANY - TA_LOCKS_MAX);
  for (size_t i = 0; i < MANY; i++) expect(i, "sync", i < TA_LOCKS_MAX ? &lock[i] : NULL, TO_NONE);
  expect(MANY, "sync", &lock[0], TO_NONE);
  expect(MANY + 1, "sync", &lock[MANY - 1], TO_NONE);
}

Test(emit_locks, where_a_holder_finds_no_room_the_lock_alone_may) {
  static char lock[TA_LOCKS_MAX];

  begin(26);
  for (size_t i = 0; i < sizeof lock; i++) wait_for(TA_WAIT_MUTEX, &lock[i]);
  ta_wait_begin_in(0, TA_WAIT_MUTEX,
                   (struct ta_waited_for){ .object = (uintptr_t)&lock[9], .holder = 71 });
  ta_wait_end();
  end();
  expect(TA_LOCKS_MAX, "sync", &lock[9], TO_NONE);
  cr_assert_eq(reported.missed, 0);
}

Test(emit_locks, version_22_cannot_say_it) {
  static char lock;

  begin(22);
  wait_for(TA_WAIT_MUTEX, &lock);
  end();
  cr_assert_eq(reported.waits, 1);
  expect(0, "sync", NULL, TO_NONE);
}

/* Threads wait for the same few locks, which are new in each generation. */
enum { THREADS = 4, ROUNDS = 3000, LOCKS = 50 };

static void *wait_for_many(void *arg) {
  static char lock[LOCKS];

  for (unsigned i = 0; i < ROUNDS; i++) wait_for(TA_WAIT_MUTEX, &lock[i * 7 % LOCKS]);
  return arg;
}

Test(emit_locks, threads_that_meet_at_a_lock_agree_on_its_string) {
  pthread_t thread[THREADS];

  begin(26);
  for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, wait_for_many, NULL);
  for (int i = 0; i < 20; i++) emit_end_generation();
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  end();
  cr_assert_eq(reported.missed, 0);
  cr_assert_eq(reported.waits, THREADS * ROUNDS);
  for (size_t i = 0; i < reported.waits; i++) cr_assert_neq(reported.wait[i].object, 0);
}

#if defined(__x86_64__) &&                                                                         \
    !defined(TC_SANITIZED) /* instrumented code has a hundred times as many steps */
/* A thread that the flusher left behind is stopped at each instruction of ta_locks_put() in turn (with the trap flag). While it
 * is stopped, its table is cleared for a newer generation. */

enum { OWN = 4, TRAP_FLAG = 0x100 };

static struct {
  struct ta_thread older, newer;
  uint32_t gen; /* of the newer thread */
  uint64_t string[OWN];
  int steps_left; /* until the table is cleared */
} left_behind;

static uintptr_t own_lock(uint64_t i) {
  return 4096 + i * 64;
}

static void go_on(void) {
  ta_locks_clear(left_behind.gen - 2);
  for (uint64_t i = 0; i < OWN; i++)
    left_behind.string[i] = ta_locks_put(&left_behind.newer, 2, own_lock(i), 9);
}

static void on_step(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info;
  greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

  *flags |= TRAP_FLAG;
  if (left_behind.steps_left-- > 0) return;
  *flags &= ~TRAP_FLAG;
  if (left_behind.steps_left == -1) go_on();
}

static void check_own_locks(void) {
  for (uint64_t i = 0; i < OWN; i++) {
    struct ta_lock lock;
    cr_assert_geq(left_behind.string[i], TA_LOCKS_FIRST_ID);
    cr_assert(
        ta_locks_at(left_behind.gen, (uint32_t)(left_behind.string[i] - TA_LOCKS_FIRST_ID), &lock));
    cr_assert_eq(lock.object, own_lock(i), "lock %u", (unsigned)i);
    cr_assert_eq(lock.reason, 2);
    cr_assert_eq(lock.holder, 9);
  }
}

/* Returns false if ta_locks_put() took fewer steps. */
static bool stop_a_put_at(int step) {
  atomic_store(&left_behind.older.gen, left_behind.gen - 2);
  atomic_store(&left_behind.newer.gen, left_behind.gen);
  left_behind.steps_left = step;
  __asm__ volatile("int3");
  ta_locks_put(&left_behind.older, 1, 1 << 20, 7);
  int left = left_behind.steps_left;
  left_behind.steps_left = -2; /* the next step is the last */
  return left < 0;
}

Test(emit_locks, a_thread_left_behind_changes_no_lock_of_a_newer_generation) {
  struct sigaction stepping = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
  int step = 0;

  cr_assert_eq(sigaction(SIGTRAP, &stepping, NULL), 0);
  for (left_behind.gen = 100; stop_a_put_at(step); step++, left_behind.gen += 2) {
    check_own_locks();
    ta_locks_clear(left_behind.gen);
  }
  cr_assert_gt(step, 30); /* the thread was stopped inside ta_locks_put() */
}
#endif
