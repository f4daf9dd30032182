/* SPDX-License-Identifier: Apache-2.0 */
/* The host's errno is not ours: KEEP_ERRNO at the head of a function puts it back at its end. */
#ifndef TA_KEEP_H
#define TA_KEEP_H

#include <errno.h>

#include "base/result.h"

static inline void ta_restore_errno(const int *before) {
  errno = *before;
}

#define KEEP_ERRNO TB_CLEANUP(ta_restore_errno) int errno_before = errno

#endif
