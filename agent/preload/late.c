/* SPDX-License-Identifier: Apache-2.0 */
/* Delays the begin of a program's stream. Most programs end soon: a shell's children, a compiler's parts. For the first
 * 500 ms (TRACEAGENT_DELAY_MS) the library stores the program's events, but has no thread, no connection and no OpenSSL: a TLS
 * connection costs some 12 ms of CPU, a fortieth of that time. After 500 ms, or once 64 KiB are written, the stream begins
 * in the next call that is recorded: no code of ours runs between calls. A program that makes no such call is checked when
 * it ends. A program that calls listen() is a server and may wait in one call for hours: the agent's threads begin in
 * listen(), and connect when the 500 ms are over.
 *
 * The begin creates threads, which takes locks of libc's and allocates. A stream must not begin
 *
 *   - inside this thread's allocator or its pthread_create(), or in a handler that interrupted one of them: `inside`. A
 *     handler that interrupted a traced call cannot begin a stream, because ta_trace_begin() ignores its calls;
 *   - on a thread that an allocator has created for itself: its whole life is `inside`;
 *   - in the child of a vfork(), which runs in the parent's memory: it has another process id.
 *
 * If the program itself, or a library that is preloaded first, has the allocator, our wrappers do not see when it runs.
 * Then the threads are created at once, in the constructor, and only the connection waits. */
#include "agent/emit/generation/session.h"
#include "agent/host/clock.h"
#include "agent/preload/preload.h"

static _Atomic uint64_t begins_ns; /* the latest time at which the stream begins */
static pid_t owner;

void ta_late_open(uint64_t delay_ms) {
  owner = getpid();
  atomic_store(&begins_ns, ta_mono_ns() + delay_ms * UINT64_C(1000000));
}

bool ta_late_is_owner(void) {
  return getpid() == owner;
}

uint64_t ta_late_first_try_ns(void) {
  return atomic_load(&begins_ns);
}

static bool is_time(void) {
  return ta_emit_is_due() || ta_mono_ns() >= atomic_load_explicit(&begins_ns, memory_order_relaxed);
}

static void run_session(void *self) {
  int error = ta_emit_run(*(uint64_t *)self);

  if (error != TA_OK && error != TA_E_OFF && ta_preload_is_verbose())
    ta_preload_say("not traced: %s", ta_strerror(error));
}

static void begin(uint64_t first_try_ns) {
  int before = errno;

  ta_agent_begins();
  if ((atomic_fetch_and(&ta_traced, ~(1u << TA_TRACE_LATE)) & 1u << TA_TRACE_LATE) != 0)
    ta_on_own_stack(run_session, &first_try_ns);
  ta_agent_ends();
  errno = before;
}

void ta_late_look(void) {
  if (ta_here.inside == 0 && is_time() && ta_late_is_owner()) begin(0);
}

/* Called for heap events: does not read the clock, which would cost more than the call. */
void ta_late_look_at_bytes(void) {
  if (ta_here.inside == 0 && ta_emit_is_due() && ta_late_is_owner()) begin(0);
}

static void begin_server(void) {
  if (ta_is_late() && ta_here.inside == 0 && ta_late_is_owner()) begin(ta_late_first_try_ns());
}

bool ta_late_is_worth_a_stream(void) {
  return is_time();
}

TA_API int listen(int fd, int backlog) {
  int answer = TA_REAL(listen)(fd, backlog);

  if (answer == 0) begin_server();
  return answer;
}
