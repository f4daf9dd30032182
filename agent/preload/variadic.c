/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose parameters depend on the first ones. Most of their calls are passed on untraced.
 *
 * On x86-64 and aarch64 callers pass variable arguments like named ones. Here they have names, so that arguments that are
 * passed on need not be saved first. An argument that the caller did not pass is not read: whatever is in its place is
 * passed on, as libc does. */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "agent/preload/preload.h"

/* fcntl() */

typedef int raw_fcntl(int fd, int cmd, void *arg);

TA_API raw_fcntl ta_raw_fcntl __asm__("fcntl");
TA_API raw_fcntl ta_raw_fcntl64 __asm__("fcntl64");

#define REAL_FCNTL(name) (*(raw_fcntl **)(void *)TA_REAL_SLOT(name))

#define FCNTL(name)                                                                                \
  int ta_raw_##name(int fd, int cmd, void *arg) {                                                  \
    bool waits = cmd == F_SETLKW || cmd == F_OFD_SETLKW;                                           \
    if (TB_LIKELY(!waits) || !ta_traces(TA_TRACE_CALL)) return REAL_FCNTL(name)(fd, cmd, arg);     \
    bool traced = ta_trace_begin(TA_TRACE_CALL, TA_CALL_##name, NULL, 0, TA_FRAME);                \
    int answer = REAL_FCNTL(name)(fd, cmd, arg);                                                   \
    if (traced) ta_trace_end(TA_FRAME);                                                            \
    return answer;                                                                                 \
  }

FCNTL(fcntl)
FCNTL(fcntl64)

/* syscall(): up to six words after the number. */

typedef long raw_call(long number, long a, long b, long c, long d, long e, long f);

TA_API raw_call ta_raw_call __asm__("syscall");

static inline raw_call *real_call(void) {
  return *(raw_call **)(void *)TA_REAL_SLOT(syscall);
}

/* Returns true if the call will wait. The kernel compares the word, too: if it has changed, the call returns at once. */
static inline bool futex_waits(long operation, const uint32_t *word, long value) {
  switch (operation & FUTEX_CMD_MASK) {
  case FUTEX_WAIT:
  case FUTEX_WAIT_BITSET: return __atomic_load_n(word, __ATOMIC_RELAXED) == (uint32_t)value;
  case FUTEX_LOCK_PI: return true;
  default: return false;
  }
}

static inline bool futex_wakes(long operation) {
  switch (operation & FUTEX_CMD_MASK) {
  case FUTEX_WAKE:
  case FUTEX_WAKE_BITSET:
  case FUTEX_UNLOCK_PI: return true;
  default: return false;
  }
}

static inline bool futex_wakes_many(long operation, long n) {
  return n > 1 && (operation & FUTEX_CMD_MASK) != FUTEX_UNLOCK_PI;
}

/* Entered by a jump, so that its frame is that of syscall(). */
static __attribute__((noinline)) long futex(long number, long a, long b, long c, long d, long e,
                                            long f) {
  const uint32_t *word = (const uint32_t *)a;
  bool traced = false;

  if (futex_wakes(b))
    TA_TRACE_WAKE(syscall, word, futex_wakes_many(b, c) ? TA_WAKE_ALL : TA_WAKE_ONE);
  else if (futex_waits(b, word, c))
    traced = ta_trace_begin(TA_TRACE_MUTEX, TA_CALL_syscall, word, 0, TA_FRAME);
  long answer = real_call()(number, a, b, c, d, e, f);
  if (traced) ta_trace_end(TA_FRAME);
  return answer;
}

static __attribute__((noinline)) long confine(long number, long a, long b, long c, long d, long e,
                                              long f) {
  struct ta_bars bars = ta_bars_begin(number, a, b);
  long answer = real_call()(number, a, b, c, d, e, f);

  ta_bars_end(bars, answer == 0);
  return answer;
}

long ta_raw_call(long number, long a, long b, long c, long d, long e, long f) {
  if (TB_UNLIKELY(number == SYS_futex) && ta_traces(TA_TRACE_MUTEX))
    return futex(number, a, b, c, d, e, f);
  if (TB_UNLIKELY(number == SYS_prctl || number == SYS_seccomp))
    return confine(number, a, b, c, d, e, f);
  return real_call()(number, a, b, c, d, e, f);
}

/* prctl() */

typedef int raw_prctl(int option, long a, long b, long c, long d);

TA_API raw_prctl ta_raw_prctl __asm__("prctl");

int ta_raw_prctl(int option, long a, long b, long c, long d) {
  raw_prctl *real = *(raw_prctl **)(void *)TA_REAL_SLOT(prctl);
  struct ta_bars bars = ta_bars_begin(SYS_prctl, option, a);
  int answer = real(option, a, b, c, d);

  ta_bars_end(bars, answer == 0);
  return answer;
}
