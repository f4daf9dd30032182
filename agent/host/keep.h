/* SPDX-License-Identifier: Apache-2.0 */
/* KEEP_ERRNO at the head of a function restores the host's errno at its end. KEEP_FROM_CANCEL disables cancellation until
 * the end of the function, so that no thread is cancelled while it holds a lock of the agent's. */
#ifndef TA_HOST_KEEP_H
#define TA_HOST_KEEP_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "base/result.h"

static inline void ta_restore_errno(const int *before) {
  errno = *before;
}

#define KEEP_ERRNO TB_CLEANUP(ta_restore_errno) int errno_before = errno

static inline int ta_forbid_cancel(void) {
  int before;

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static inline void ta_restore_cancel(const int *before) {
  pthread_setcancelstate(*before, NULL);
}

/* When a thread of the host's writes a file of the agent's, exceeding RLIMIT_FSIZE must not kill the host: the write
 * fails, and the pending SIGXFSZ, which only this thread receives, is discarded. */
struct ta_file_limit {
  sigset_t before;
  bool was_blocked;
};

static inline struct ta_file_limit ta_forbid_limit_signal(void) {
  struct ta_file_limit limit;
  sigset_t signal;

  sigemptyset(&signal);
  sigaddset(&signal, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signal, &limit.before);
  limit.was_blocked = sigismember(&limit.before, SIGXFSZ) == 1;
  return limit;
}

static inline void ta_restore_limit_signal(const struct ta_file_limit *limit) {
  sigset_t signal;

  if (limit->was_blocked) return;
  sigemptyset(&signal);
  sigaddset(&signal, SIGXFSZ);
  sigtimedwait(&signal, NULL, &(struct timespec){ 0 });
  pthread_sigmask(SIG_SETMASK, &limit->before, NULL);
}

#define KEEP_FROM_FILE_LIMIT                                                                       \
  TB_CLEANUP(ta_restore_limit_signal) struct ta_file_limit limit_before = ta_forbid_limit_signal()

#define KEEP_FROM_CANCEL TB_CLEANUP(ta_restore_cancel) int cancel_before = ta_forbid_cancel()

#endif
