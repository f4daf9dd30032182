/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host/spawn.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host/counter.h"
#include "agent/host/filter.h"
#include "agent/host/process.h"

struct start {
  const char *name;
  void *(*body)(void *self);
  void *self;
  bool on_first; /* the opener is the process's first thread */
};

static void leave_real_time(void) {
  struct sched_param usual = { .sched_priority = 0 };

  if (!ta_filter_spares(SYS_sched_getscheduler, 0, 0, 0)) return;
  int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  if (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE) return;
  if (ta_filter_spares(SYS_sched_setscheduler, 0, SCHED_OTHER, (long)&usual))
    sched_setscheduler(0, SCHED_OTHER, &usual);
}

static void widen_affinity(void) {
  cpu_set_t all;

  if (sched_getaffinity(getpid(), sizeof all, &all) != 0) return;
  if (ta_filter_spares(SYS_sched_setaffinity, 0, sizeof all, (long)&all))
    sched_setaffinity(0, sizeof all, &all);
}

static void unblock_faults(void) {
  static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
  sigset_t set;

  sigemptyset(&set);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigaddset(&set, faults[i]);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void *begin(void *handed) {
  struct start s = *(struct start *)handed;

  free(handed);
  ta_process_thread_begins();
  ta_counter_allow();
  unblock_faults();
  leave_real_time();
  if (!s.on_first) widen_affinity();
  pthread_setname_np(pthread_self(), s.name);
  return s.body(s.self);
}

/* The new thread begins with all signals blocked. */
static int create(pthread_t *out, const pthread_attr_t *attr, struct start *s) {
  sigset_t all, before;

  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(out, attr, begin, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static int spawn(pthread_t *out, int detach, const char *name, size_t stack_bytes,
                 void *(*body)(void *self), void *self) {
  struct start *s = malloc(sizeof *s);
  pthread_attr_t attr;

  if (s == NULL) return ENOMEM;
  *s = (struct start){ name, body, self, gettid() == getpid() };
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, detach);
  if (stack_bytes != 0) pthread_attr_setstacksize(&attr, stack_bytes);
  ta_process_thread_starts();
  int error = create(out, &attr, s);
  pthread_attr_destroy(&attr);
  if (error != 0) ta_process_thread_fails();
  if (error != 0) free(s);
  return error;
}

int ta_spawn(pthread_t *out, const char *name, size_t stack_bytes, void *(*body)(void *self),
             void *self) {
  return spawn(out, PTHREAD_CREATE_JOINABLE, name, stack_bytes, body, self);
}

int ta_spawn_detached(const char *name, size_t stack_bytes, void *(*body)(void *self), void *self) {
  pthread_t unused;

  return spawn(&unused, PTHREAD_CREATE_DETACHED, name, stack_bytes, body, self);
}
