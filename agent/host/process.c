/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/host/clock.h"

enum { EXIT_WAIT_MS = 200, FORK_WAIT_MS = 200 };

static TA_AT_FORK pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TA_AT_FORK pthread_cond_t calm; /* a member became quiet, a thread rests */
static TA_AT_FORK struct ta_member *members;
static TA_AT_FORK pid_t owner;      /* a child that was made without fork() has another id */
static TA_AT_FORK unsigned working; /* threads that do not rest */
static TA_AT_FORK atomic_uint epoch;
static TA_AT_FORK bool calm_is_parents;
static atomic_bool exiting;
static _Atomic(const struct ta_fork_hooks *) hooks;

void ta_process_hold(void) {
  struct timespec until = ta_timespec(ta_mono_ns() + FORK_WAIT_MS * UINT64_C(1000000));

  pthread_mutex_lock(&lock);
  while (working > 0)
    if (pthread_cond_timedwait(&calm, &lock, &until) != 0) break;
}

void ta_process_go_on(void) {
  pthread_mutex_unlock(&lock);
}

/* The hooks' locks are taken last: no other thread waits for them while this one waits for our threads. */
static TA_CODE_AT_FORK void lock_for_fork(void) {
  const struct ta_fork_hooks *others = atomic_load(&hooks);

  ta_process_hold();
  if (others != NULL) others->prepare();
}
static TA_CODE_AT_FORK void unlock_parent(void) {
  const struct ta_fork_hooks *others = atomic_load(&hooks);

  if (others != NULL) others->parent();
  pthread_mutex_unlock(&lock);
}

/* Threads of the parent may have waited for `calm`: the child has its own, once it needs it. */
static TA_CODE_AT_FORK void start_child(void) {
  const struct ta_fork_hooks *others = atomic_load(&hooks);

  for (struct ta_member *m = members; m != NULL; m = m->next)
    if (m->forked != NULL) m->forked(m);
  members = NULL;
  working = 0;
  calm_is_parents = true;
  atomic_fetch_add(&epoch, 1);
  owner = getpid();
  if (others != NULL) others->child();
  pthread_mutex_unlock(&lock);
}

static const struct ta_member *first_loud(void) {
  const struct ta_member *m = members;

  while (m != NULL && m->quiet) m = m->next;
  return m;
}

static void at_exit(void) {
  if (!ta_process_is_owner()) return;
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
  owner = getpid();
  ta_cond_init(&calm);
  registered =
      atexit(at_exit) == 0 && pthread_atfork(lock_for_fork, unlock_parent, start_child) == 0;
}

static bool watch(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, register_handlers);
  return registered;
}

bool ta_process_hook_fork(const struct ta_fork_hooks *of) {
  if (!watch()) return false;
  atomic_store(&hooks, of);
  return true;
}

/* With the lock. Nothing waits for `calm` before there is a member or a thread at work. */
static void own_calm(void) {
  if (calm_is_parents) ta_cond_init(&calm);
  calm_is_parents = false;
}

bool ta_process_is_owner(void) {
  return getpid() == owner;
}

bool ta_process_own(struct ta_member *member) {
  if (!watch() || exiting || !ta_process_is_owner()) return false;
  member->epoch = epoch;
  return true;
}

bool ta_process_join(struct ta_member *member) {
  if (!ta_process_own(member)) return false;
  pthread_mutex_lock(&lock);
  own_calm();
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
  return member->epoch == epoch && ta_process_is_owner();
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
  own_calm();
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
