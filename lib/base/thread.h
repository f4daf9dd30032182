/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the collector's threads with all signals blocked; only the main thread handles signals. Elsewhere a signal
 * could interrupt a write or a sync (EINTR), and an interrupted sync gives its file up. */
#ifndef TC_BASE_THREAD_H
#define TC_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Returns 0 or an errno. attr may be NULL. */
static inline int tc_thread_start(pthread_t *thread, const pthread_attr_t *attr,
                                  void *(*run)(void *self), void *self) {
  sigset_t all, before;

  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int failed = pthread_create(thread, attr, run, self);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

#endif
