/* SPDX-License-Identifier: Apache-2.0 */
/* Opening of files: the caller passes a mode only if the call may create a file. */
#include <stdarg.h>

#include "agent/preload/preload.h"

#define WITH_MODE(flags, mode)                                                                     \
  mode_t mode = 0;                                                                                 \
  if (__OPEN_NEEDS_MODE(flags)) {                                                                  \
    va_list args;                                                                                  \
    va_start(args, flags);                                                                         \
    mode = va_arg(args, mode_t);                                                                   \
    va_end(args);                                                                                  \
  }

#define OPEN(name)                                                                                 \
  TA_API int name(const char *path, int flags, ...) {                                              \
    WITH_MODE(flags, mode)                                                                         \
    bool traced = ta_traces(TA_TRACE_CALL) &&                                                      \
                  ta_trace_begin(TA_TRACE_CALL, TA_CALL_##name, NULL, 0, TA_FRAME);                \
    int fd = TA_REAL(name)(path, flags, mode);                                                     \
    if (traced) ta_trace_end(TA_FRAME);                                                            \
    return ta_descriptors_keep(fd);                                                                \
  }

#define OPEN_AT(name)                                                                              \
  TA_API int name(int folder, const char *path, int flags, ...) {                                  \
    WITH_MODE(flags, mode)                                                                         \
    bool traced = ta_traces(TA_TRACE_CALL) &&                                                      \
                  ta_trace_begin(TA_TRACE_CALL, TA_CALL_##name, NULL, 0, TA_FRAME);                \
    int fd = TA_REAL(name)(folder, path, flags, mode);                                             \
    if (traced) ta_trace_end(TA_FRAME);                                                            \
    return ta_descriptors_keep(fd);                                                                \
  }

OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)
