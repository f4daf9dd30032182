/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the collector take no signals: those are the main thread's. One that arrived elsewhere could
 * end a write or a sync early (EINTR), and an interrupted sync gives its file up. */
#ifndef TC_BASE_THREAD_H
#define TC_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* 0, or why not, as of errno. attr may be NULL. */
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
