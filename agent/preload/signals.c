/* SPDX-License-Identifier: Apache-2.0 */
/* The program may use the signal that takes samples, too. In whatever order handlers are installed, the kernel's handler is
 * ours, the program sees its own, and a sample never reaches the program (agent/emit/core/caught.h). A program that takes the
 * signal in a way that does not distinguish samples, by sigwait() and its like or a descriptor, has no samples from then on. */
#include <sys/signalfd.h>

#include "agent/emit/core/caught.h"
#include "agent/emit/generation/samples.h"
#include "agent/preload/preload.h"

static inline bool is_shared(int number) {
  return TB_UNLIKELY(ta_is_caught(number)) && !ta_agent_runs();
}

static void share(int number, const struct sigaction *act, struct sigaction *old) {
  ta_agent_begins();
  ta_caught_action(number, act, old);
  ta_agent_ends();
}

TA_API int sigaction(int number, const struct sigaction *act, struct sigaction *old) {
  if (!is_shared(number)) return TA_REAL(sigaction)(number, act, old);
  share(number, act, old);
  return 0;
}

/* Returns the previous handler. */
static sighandler_t handle(int number, sighandler_t handler, int flags) {
  struct sigaction act = { .sa_handler = handler, .sa_flags = flags }, old;

  if ((flags & SA_NODEFER) == 0) sigaddset(&act.sa_mask, number);
  share(number, &act, &old);
  return old.sa_handler;
}

#define HANDLE(name, flags)                                                                        \
  TA_API sighandler_t name(int number, sighandler_t handler) {                                     \
    if (!is_shared(number) || handler == SIG_ERR) return TA_REAL(name)(number, handler);           \
    return handle(number, handler, flags);                                                         \
  }

HANDLE(signal, SA_RESTART)
HANDLE(ssignal, SA_RESTART)
HANDLE(sysv_signal, (int)SA_RESETHAND | SA_NODEFER)
HANDLE(__sysv_signal, (int)SA_RESETHAND | SA_NODEFER)

TA_API sighandler_t sigset(int number, sighandler_t handler) {
  struct sigaction old;
  sigset_t only, before;

  if (!is_shared(number) || handler == SIG_ERR) return TA_REAL(sigset)(number, handler);
  share(number, NULL, &old);
  if (handler != SIG_HOLD) handle(number, handler, 0);
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &only, &before);
  return sigismember(&before, number) == 1 ? SIG_HOLD : old.sa_handler;
}

TA_API int sigignore(int number) {
  if (!is_shared(number)) return TA_REAL(sigignore)(number);
  handle(number, SIG_IGN, 0);
  return 0;
}

TA_API int siginterrupt(int number, int interrupts) {
  struct sigaction action;

  if (!is_shared(number)) return TA_REAL(siginterrupt)(number, interrupts);
  share(number, NULL, &action);
  action.sa_flags = interrupts ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  share(number, &action, NULL);
  return 0;
}

static void leave_to_program(const sigset_t *set) {
  if (TB_LIKELY(!ta_samples_are_on()) || ta_agent_runs()) return;
  ta_agent_begins();
  ta_samples_yield(set);
  ta_agent_ends();
}

#define WAIT(name, params, args)                                                                   \
  TA_API int name params {                                                                         \
    leave_to_program(set);                                                                         \
    bool traced = ta_traces(TA_TRACE_SLEEP) &&                                                     \
                  ta_trace_begin(TA_TRACE_SLEEP, TA_CALL_##name, NULL, 0, TA_FRAME);               \
    int answer = TA_REAL(name) args;                                                               \
    if (traced) ta_trace_end(TA_FRAME);                                                            \
    return answer;                                                                                 \
  }

WAIT(sigwait, (const sigset_t *set, int *number), (set, number))
WAIT(sigwaitinfo, (const sigset_t *set, siginfo_t *info), (set, info))
WAIT(sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *limit),
     (set, info, limit))

TA_API int signalfd(int fd, const sigset_t *set, int flags) {
  leave_to_program(set);
  return TA_REAL(signalfd)(fd, set, flags);
}
