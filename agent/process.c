/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/clock.h"

enum { EXIT_WAIT_MS = 200, FORK_WAIT_MS = 200 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t calm; /* a member became quiet, a thread rests */
static struct ta_member *members;
static unsigned working; /* threads that do not rest */
static atomic_uint epoch;
static atomic_bool exiting;

static void lock_for_fork(void) {
  struct timespec until = ta_timespec(ta_mono_ns() + FORK_WAIT_MS * UINT64_C(1000000));

  pthread_mutex_lock(&lock);
  while (working > 0)
    if (pthread_cond_timedwait(&calm, &lock, &until) != 0) break;
}
static void unlock_parent(void) {
  pthread_mutex_unlock(&lock);
}

static void start_child(void) {
  for (struct ta_member *m = members; m != NULL; m = m->next)
    if (m->forked != NULL) m->forked(m);
  members = NULL;
  working = 0;
  atomic_fetch_add(&epoch, 1);
  pthread_mutex_unlock(&lock);
}

static const struct ta_member *first_loud(void) {
  const struct ta_member *m = members;

  while (m != NULL && m->quiet) m = m->next;
  return m;
}

static void at_exit(void) {
  struct timespec until = ta_timespec(ta_mono_ns() + EXIT_WAIT_MS * UINT64_C(1000000));

  atomic_store(&exiting, true);
  pthread_mutex_lock(&lock);
  for (struct ta_member *m = members; m != NULL; m = m->next) m->wake(m);
  while (first_loud() != NULL)
    if (pthread_cond_timedwait(&calm, &lock, &until) != 0) break;
  pthread_mutex_unlock(&lock);
}

static bool registered;

static void register_handlers(void) {
  ta_cond_init(&calm);
  registered =
      atexit(at_exit) == 0 && pthread_atfork(lock_for_fork, unlock_parent, start_child) == 0;
}

bool ta_process_join(struct ta_member *member) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, register_handlers);
  if (!registered || exiting) return false;
  pthread_mutex_lock(&lock);
  member->epoch = epoch;
  member->next = members;
  members = member;
  pthread_mutex_unlock(&lock);
  return true;
}

void ta_process_leave(struct ta_member *member) {
  pthread_mutex_lock(&lock);
  for (struct ta_member **at = &members; *at != NULL; at = &(*at)->next)
    if (*at == member) {
      *at = member->next;
      break;
    }
  pthread_mutex_unlock(&lock);
}

bool ta_process_owns(const struct ta_member *member) {
  return member->epoch == epoch;
}

void ta_process_quiet(struct ta_member *member) {
  pthread_mutex_lock(&lock);
  member->quiet = true;
  pthread_cond_broadcast(&calm);
  pthread_mutex_unlock(&lock);
}

bool ta_process_wait_quiet(struct ta_member *member, unsigned ms) {
  struct timespec until = ta_timespec(ta_mono_ns() + ms * UINT64_C(1000000));

  pthread_mutex_lock(&lock);
  while (!member->quiet)
    if (pthread_cond_timedwait(&calm, &lock, &until) != 0) break;
  bool quiet = member->quiet;
  pthread_mutex_unlock(&lock);
  return quiet;
}

void ta_process_work_begin(void) {
  pthread_mutex_lock(&lock);
  working++;
  pthread_mutex_unlock(&lock);
}

void ta_process_work_end(void) {
  pthread_mutex_lock(&lock);
  if (--working == 0) pthread_cond_broadcast(&calm);
  pthread_mutex_unlock(&lock);
}

bool ta_process_exiting(void) {
  return exiting;
}

void ta_process_park(struct ta_member *member) {
  ta_process_quiet(member);
  for (;;) pause();
}
