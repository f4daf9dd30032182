/* SPDX-License-Identifier: Apache-2.0 */
/* CPU samples: they name what is busy, and the program receives no signals but those sent to it. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/agent/emit/emit_reported.h"
#include "traceexperiment.h"

enum { SAMPLES = 4, MEMORY_BYTES = 4 << 20 };

static __thread volatile unsigned sum;

__attribute__((noinline)) static void burn(void) {
  for (unsigned i = 0; i < 1000000; i++) sum += i;
  __asm__ volatile("");
}

/* Some samples may be lost, because the machine decides how late a generation ends. */
static uint64_t samples_now(void) {
  struct ta_emit_status status = { .size = sizeof status };

  cr_assert_eq(ta_emit_status(&status), 0);
  return status.samples;
}

static void burn_until_sampled(void) {
  ta_heap_alloc(1);
  while (samples_now() < SAMPLES) burn();
}

static const struct ta_emit_config often = { .generation_ms = 50, .samples_hz = 200 };

Test(emit_samples, the_busy_function_is_named) {
  emit_until_reported(burn_until_sampled, often, "CPUSample < burn test_emit_samples.c:");
}

/* Signals that are not the agent's. */

static volatile sig_atomic_t heard;

static void hear(int number) {
  heard += number;
}

static void hear_more(int number, siginfo_t *info, void *context) {
  cr_assert_not_null(context);
  heard += info->si_signo == number;
}

static void session_with(int number) {
  struct emitted e;
  struct ta_emit_config config = often;

  config.samples_signal = number;
  emit_reported_begin(&e, config);
  burn_until_sampled();
  raise(number != 0 ? number : SIGURG);
  free(emit_reported_end(&e));
}

Test(emit_samples, a_handler_that_was_there_hears_of_others_signals_only) {
  signal(SIGURG, hear);
  session_with(0);
  cr_assert_eq(heard, SIGURG);
  raise(SIGURG);
  cr_assert_eq(heard, 2 * SIGURG);
}

Test(emit_samples, so_does_one_on_another_signal) {
  struct sigaction action = { .sa_sigaction = hear_more, .sa_flags = SA_SIGINFO };

  sigaction(SIGRTMIN + 3, &action, NULL);
  session_with(SIGRTMIN + 3);
  cr_assert_eq(heard, 1);
}

Test(emit_samples, a_signal_that_was_ignored_is) {
  signal(SIGPROF, SIG_IGN);
  session_with(SIGPROF);
}

Test(emit_samples, a_signal_that_ends_the_program_does, .signal = SIGPROF) {
  session_with(SIGPROF);
}

static void burn_ms(long ms) {
  struct timespec now, began;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
  do {
    burn();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 < ms);
}

Test(emit_samples, a_program_that_restores_the_default_lives_on) {
  struct emitted e;

  emit_reported_begin(&e, often);
  burn_until_sampled();
  signal(SIGURG, SIG_DFL);
  burn_ms(20);
  raise(SIGURG);
  free(emit_reported_end(&e));
}

/* A handler installed after ours passes signals on to ours: ours must not pass them back. */

static struct sigaction handed_on;

static void hear_and_hand_on(int number, siginfo_t *info, void *context) {
  heard++;
  handed_on.sa_sigaction(number, info, context);
}

Test(emit_samples, a_handler_that_came_after_ours_keeps_a_session_out) {
  struct sigaction action = { .sa_sigaction = hear_and_hand_on, .sa_flags = SA_SIGINFO };
  struct ta_emit_config config = often;
  struct emitted e;

  session_with(0);
  sigaction(SIGURG, &action, &handed_on);
  cr_assert_eq(emit_begin(&e, &often, MEMORY_BYTES), TA_E_CONFIG);
  cr_assert_not_null(strstr(ta_strerror(TA_E_CONFIG), "has replaced the agent's handler"));
  raise(SIGURG);
  cr_assert_eq(heard, 1);
  config.samples_signal = SIGRTMIN + 4;
  emit_reported_begin(&e, config);
  free(emit_reported_end(&e));
  signal(SIGURG, SIG_DFL);
  session_with(0);
}

Test(emit_samples, in_a_hold_they_are_no_misuse) {
  struct ta_emit_status status = { .size = sizeof status };
  struct emitted e;

  emit_reported_begin(&e, often);
  burn_until_sampled();
  ta_hold_begin();
  burn_ms(50);
  ta_hold_end();
  cr_assert_eq(ta_emit_status(&status), 0);
  cr_assert_eq(status.misused, 0);
  free(emit_reported_end(&e));
}

/* The new session learns of the thread only when the thread detaches. */
Test(emit_samples, a_thread_that_is_detached_has_no_timer) {
  struct emitted e;

  emit_reported_begin(&e, often);
  ta_heap_alloc(1);
  struct ta_thread *t = ta_self;
  cr_assert_neq(atomic_load(&t->timer), 0);
  free(emit_reported_end(&e));
  emit_reported_begin(&e, often);
  ta_thread_detach();
  cr_assert_eq(atomic_load(&t->timer), 0);
  ta_heap_alloc(1);
  free(emit_reported_end(&e));
}

static void burn_session(void) {
  struct emitted e;

  emit_reported_begin(&e, often);
  burn_until_sampled();
  free(emit_reported_end(&e));
}

static atomic_bool enough;

static void *burn_on(void *arg) {
  while (!atomic_load(&enough)) {
    ta_heap_alloc(1);
    burn();
  }
  return arg;
}

Test(emit_samples, sessions_come_and_go_under_busy_threads) {
  pthread_t threads[2];

  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, burn_on, NULL);
  for (int i = 0; i < 3; i++) burn_session();
  atomic_store(&enough, true);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}
