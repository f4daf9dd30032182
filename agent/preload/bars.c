/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that forbid themselves what tracing takes: prctl(PR_SET_TSC), after which rdtsc and the vdso's clock end the program,
 * and seccomp's strict mode, which leaves read(), write() and exit, and forbids the counter, too. The thread's goroutine ends
 * before the call, and nothing that the thread does afterwards is traced.
 *
 * The first thread in strict mode is mostly a child in a jail. It ends by a bare exit of that one thread, and the agent's
 * threads would keep the process alive. So the whole session ends then. */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/host/counter.h"
#include "agent/preload/preload.h"

static bool is_first(void) {
  return gettid() == getpid();
}

/* Returns the bar that the call asks for; 0: none of ours. */
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
  ta_here.frame = NULL; /* of a call that a handler has interrupted, where this is one */
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

/* In strict mode nothing is asked of the kernel here. */
void ta_bars_end(struct ta_bars bars, bool done) {
  if (done && bars.allows && !ta_agent_runs()) ta_here.agent &= ~(unsigned)TA_BAR_COUNTER;
  if (done) return;
  ta_here.agent &= ~bars.set;
  if (bars.clock) atomic_store(&ta_counter_is_off, false);
  if (bars.session) ta_preload_stay();
}
