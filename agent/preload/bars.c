/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that forbid themselves what tracing needs. After prctl(PR_SET_TSC) rdtsc and the vdso's clock kill the program;
 * seccomp's strict mode permits only read(), write() and exit, and forbids the counter, too. The thread's goroutine ends
 * before the call, and the rest of the thread is not traced.
 *
 * A first thread in strict mode is usually a sandboxed child. It ends by a bare exit of that one thread, and the agent's
 * threads would keep the process alive. So the whole session ends before the call. */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/host/counter.h"
#include "agent/preload/preload.h"

static bool is_first(void) {
  return gettid() == getpid();
}

/* Returns the bar that the call sets, or 0. */
static unsigned bar_of(long number, long a, long b) {
  bool prctl = number == SYS_prctl;

  if (prctl && a == PR_SET_TSC && b == PR_TSC_SIGSEGV) return TA_BAR_COUNTER;
  if (prctl && a == PR_SET_SECCOMP && b == SECCOMP_MODE_STRICT) return TA_BAR_CALLS;
  if (number == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT) return TA_BAR_CALLS;
  return 0;
}

static void leave(unsigned bar) {
  int before = errno;

  ta_agent_begins();
  if (bar == TA_BAR_CALLS && is_first())
    ta_preload_leave(NULL);
  else
    ta_thread_detach();
  ta_agent_ends();
  ta_here.frame = NULL; /* set if a handler that interrupted a traced call runs this */
  errno = before;
}

struct ta_bars ta_bars_begin(long number, long a, long b) {
  struct ta_bars bars = { .allows = number == SYS_prctl && a == PR_SET_TSC && b == PR_TSC_ENABLE };
  unsigned bar = ta_agent_runs() ? 0 : bar_of(number, a, b);

  if (bar == TA_BAR_COUNTER) bars.clock = !atomic_exchange(&ta_counter_is_off, true);
  if (bar == 0 || !ta_preload_is_on() || (bar == TA_BAR_COUNTER && !ta_preload_counts()))
    return bars;
  bars.session = bar == TA_BAR_CALLS && is_first();
  bars.set = bar & ~ta_here.agent;
  if ((ta_here.agent & TA_BARS) == 0 || bars.session) leave(bar);
  ta_here.agent |= bar;
  return bars;
}

/* Makes no system call after success: in strict mode it would kill the thread. */
void ta_bars_end(struct ta_bars bars, bool done) {
  if (done && bars.allows && !ta_agent_runs()) ta_here.agent &= ~(unsigned)TA_BAR_COUNTER;
  if (done) return;
  ta_here.agent &= ~bars.set;
  if (bars.clock) atomic_store(&ta_counter_is_off, false);
  if (bars.session) ta_preload_stay();
}
