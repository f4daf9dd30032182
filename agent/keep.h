/* SPDX-License-Identifier: Apache-2.0 */
/* The host's errno is not ours: KEEP_ERRNO at the head of a function puts it back at its end. Nor is its being cancelled:
 * between KEEP_FROM_CANCEL and the end of the function no thread ends, whatever that calls, with a lock of ours held. */
#ifndef TA_KEEP_H
#define TA_KEEP_H

#include <errno.h>
#include <pthread.h>

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

#define KEEP_FROM_CANCEL TB_CLEANUP(ta_restore_cancel) int cancel_before = ta_forbid_cancel()

#endif
