/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/generation/samples.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/emit/core/caught.h"
#include "agent/emit/core/reserve.h"
#include "agent/emit/events/put.h"
#include "agent/emit/stacks/stacks.h"
#include "agent/host/filter.h"
#include "agent/host/keep.h"
#include "base/check.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { NO_CLOCK = 1000, NO_TIMER = -1 }; /* invalid numbers */
enum { ROOM_MIN = 16, ROOM_MAX = 2048, PLACES_MIN = 64 };

struct sample {
  uint64_t time, go; /* time: in ticks; go: 0 if it is not known */
  int64_t proc;      /* -1: none */
  uint64_t thread;
  uint32_t stack;
};

/* Samples of one place in one generation; several threads may occupy the place in turn. */
struct samples {
  uint32_t n;
  struct sample of[];
};

static struct ta_reserve memory; /* two struct samples for each place, by the generation's parity */
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static size_t room_bytes;
static uint32_t room;
static unsigned depth;
static struct timespec interval;
static int signal_number;
static atomic_bool yielded; /* the program waits for the signal itself */
atomic_bool ta_samples_on;

static struct samples *samples_of(uint32_t place, uint32_t gen) {
  return (struct samples *)(void *)(memory.bytes + room_bytes * (2 * place + (gen & 1)));
}

/* The handler. */

static const char our_timers; /* its address in si_value marks our timers' signals */

static void add_sample(struct ta_thread *t, uint32_t gen, const void *context) {
  uint64_t pcs[TA_FRAMES_MAX] TA_UNSET;
  struct samples *samples = samples_of(t->place, gen);
  int64_t now = (int64_t)(ta_ticks_now(&ta_emit.clock[gen & 1]) - ta_emit.origin);

  if (samples->n == room) {
    atomic_fetch_add_explicit(&ta_emit.lost_samples, 1, memory_order_relaxed);
    return;
  }
  uint32_t stack = ta_stacks_put(gen, pcs, ta_frames_of_signal(t, context, pcs, depth));
  bool runs = t->hold == TA_HOLDS_RUNNING;
  samples->of[samples->n++] = (struct sample){ .time = now > 0 ? (uint64_t)now : 0,
                                               .go = t->go != NULL ? ta_go_id(t->go) : 0,
                                               .proc = runs ? (int64_t)t->place : -1,
                                               .thread = t->system_id,
                                               .stack = stack };
}

/* While the thread is busy, the flusher ends neither the generation that the thread is in nor the one that is read here,
 * which may be newer. A thread that is busy already was interrupted in a section or is in a hold, and stays busy. */
static void on_signal(int number, siginfo_t *info, void *context) {
  if (info->si_code != SI_TIMER || info->si_value.sival_ptr != (const void *)&our_timers) {
    ta_caught_pass_on(number, info, context);
    return;
  }
  KEEP_ERRNO;
  struct ta_thread *t = ta_self;
  if (t == NULL) return;
  bool outside = atomic_load_explicit(&t->busy, memory_order_relaxed) == 0 && ta_begin(t);
  uint32_t gen = ta_gen_now();
  if (gen != 0 && t->session == ta_emit.session && ta_samples_are_on()) add_sample(t, gen, context);
  if (outside) ta_leave(t);
}

/* Timers, by system call: glibc's timer_create() allocates before 2.34, and a thread may be armed in a hook. */

/* Returns the number of places that have had threads and have memory here. */
static uint32_t usable_places(void) {
  uint32_t places = ta_threads_end();

  pthread_mutex_lock(&growing);
  if (places > memory.usable) places = memory.usable;
  pthread_mutex_unlock(&growing);
  return places;
}

static bool make_room(uint32_t place) {
  pthread_mutex_lock(&growing);
  bool grown = ta_reserve_grow(&memory, place + 1);
  pthread_mutex_unlock(&growing);
  return grown;
}

/* Returns false if a seccomp filter would kill this thread for using a timer. */
static bool is_spared(void) {
  return ta_filter_spares(SYS_timer_create, NO_CLOCK, 0, 0) &&
         ta_filter_spares(SYS_timer_settime, NO_TIMER, 0, 0);
}

/* A blocked signal would stay pending until the program unblocks it or waits for it. */
static bool is_blocked(void) {
  sigset_t blocked;

  return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 &&
         sigismember(&blocked, signal_number) == 1;
}

void ta_samples_arm(struct ta_thread *t) {
  struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal_number };
  struct itimerspec every = { .it_interval = interval, .it_value = interval };
  int timer;

  if (yielded || is_blocked() || !make_room(t->place) || !is_spared()) return;
  event.sigev_value.sival_ptr = (void *)(uintptr_t)&our_timers;
  event.sigev_notify_thread_id = gettid();
  if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return;
  syscall(SYS_timer_settime, timer, 0, &every, NULL);
  ta_samples_disarm(t);
  atomic_store(&t->timer, (uintptr_t)timer + 1);
}

void ta_samples_disarm(struct ta_thread *t) {
  uintptr_t timer = atomic_exchange(&t->timer, 0);

  if (timer != 0 && ta_filter_spares(SYS_timer_delete, NO_TIMER, 0, 0))
    syscall(SYS_timer_delete, (int)(timer - 1));
}

/* Public. */

bool ta_samples_are_allowed(void) {
  KEEP_ERRNO;

  return is_spared() && syscall(SYS_timer_create, (long)NO_CLOCK, NULL, NULL) != 0 &&
         errno == EINVAL;
}

tb_rc ta_samples_start(unsigned hz, int number, unsigned frames, uint64_t period_ns) {
  uint64_t due = period_ns / 1000000 * hz / 1000;

  signal_number = number != 0 ? number : SIGURG;
  depth = frames != 0 ? frames : TA_SAMPLES_DEPTH;
  interval = ta_timespec(1000000000u / hz);
  room = (uint32_t)(due < ROOM_MAX ? due + due / 4 : ROOM_MAX) + ROOM_MIN;
  room_bytes = sizeof(struct samples) + room * sizeof(struct sample);
  TB_TRY(ta_reserve_init(&memory, 2 * room_bytes, TA_THREADS_MAX, PLACES_MIN));
  tb_rc rc = ta_caught_begin(signal_number, on_signal);
  atomic_store(&yielded, false);
  if (rc == TB_OK)
    atomic_store(&ta_samples_on, true);
  else
    ta_reserve_fini(&memory);
  return rc;
}

static void disarm_all(void) {
  for (uint32_t i = 0; i < ta_threads_end(); i++) ta_samples_disarm(&ta_threads[i]);
}

void ta_samples_yield(const sigset_t *set) {
  if (!ta_samples_are_on() || ta_is_off() || sigismember(set, signal_number) != 1) return;
  if (!atomic_exchange(&yielded, true)) disarm_all();
}

void ta_samples_stop(void) {
  if (!ta_samples_are_on()) return;
  atomic_store(&ta_samples_on, false);
  disarm_all();
  ta_reserve_fini(&memory);
}

void ta_samples_forget(void) {
  growing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  if (ta_samples_are_on()) ta_reserve_fini(&memory);
  atomic_store(&ta_samples_on, false);
}

/* Tables. */

static void write_sample(struct ta_generation *k, uint32_t gen, const struct sample *s) {
  struct tw_cpu_sample sample = {
    .time = s->time, .m = (int64_t)s->thread, .p = s->proc, .g = (int64_t)s->go, .stack = s->stack
  };

  if (tw_write_cpu_sample(&k->write, &sample) != TB_AGAIN) return;
  ta_generation_close_batch(k, gen);
  ta_generation_open_batch(k, gen, TB_NO_THREAD);
  TB_CHECK(tw_write_cpu_sample(&k->write, &sample) == TB_OK);
}

void ta_samples_write(struct ta_generation *k, uint32_t gen) {
  if (!ta_samples_are_on()) return;
  ta_generation_open_batch(k, gen, TB_NO_THREAD);
  uint32_t end = usable_places();
  for (uint32_t i = 0; i < end; i++) {
    struct samples *samples = samples_of(i, gen);
    if (samples->n == 0) continue;
    for (uint32_t n = 0; n < samples->n; n++) write_sample(k, gen, &samples->of[n]);
    atomic_fetch_add_explicit(&ta_emit.samples, samples->n, memory_order_relaxed);
    samples->n = 0;
  }
  ta_generation_close_batch(k, gen);
}
