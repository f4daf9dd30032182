/* SPDX-License-Identifier: Apache-2.0 */
/* The program's session: from before its main() to after its last exit handler. */
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/emit/core/caught.h"
#include "agent/emit/generation/session.h"
#include "agent/emit/stacks/symbols.h"
#include "agent/host/counter.h"
#include "agent/host/process.h"
#include "agent/preload/preload.h"
#include "agent/preload/variables.h"
#include "agent/spool/spool.h"

enum {
  PATIENCE_OF_EXIT = 10, /* a tenth of exit_ms, if the collector has never answered */
  PATIENCE_OF_EXEC = 5,  /* a fifth of exit_ms, for the acks before an exec() */
};

static struct ta_variables variables;
static pid_t owner; /* process of the session */
static bool begun;  /* a session has begun, in this process or a parent */
static bool counts; /* the session's clock is the processor's counter */

/* A program may close its standard error and open a file under that number: no line of ours is written to that file. */
static struct stat stderr_at_start; /* st_ino 0: there was none */

static bool stderr_is_the_same(void) {
  struct stat now;

  return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == stderr_at_start.st_dev &&
         now.st_ino == stderr_at_start.st_ino;
}

void ta_preload_say(const char *fmt, ...) {
  if (!stderr_is_the_same()) return;
  char line[400] = "libtraceagent-preload: ";
  size_t n = strlen(line);
  va_list args;

  va_start(args, fmt);
  vsnprintf(line + n, sizeof line - n - 1, fmt, args);
  va_end(args);
  strcat(line, "\n");
  if (TA_REAL(write)(STDERR_FILENO, line, strlen(line)) < 0) return; /* nobody can be informed */
}

static void log_line(void *self, int level, const char *text) {
  (void)self;
  (void)level;
  ta_preload_say("%s", text);
}

/* The agent's handlers of fork() take locks, and must not be traced. So these run before and after them. Handlers that the
 * program registered before these run in between, too, and may start threads. */
static TA_CODE_AT_FORK void before_fork(void) {
  ta_agent_begins();
  ta_here.forks = true;
}
static TA_CODE_AT_FORK void in_parent(void) {
  ta_here.forks = false;
  ta_agent_ends();
}
static TA_CODE_AT_FORK void in_child(void) {
  atomic_store(&ta_traced, 0);
  in_parent();
}

static void end_at_exit(void);

static void watch_process(void) {
  pthread_atfork(before_fork, in_parent, in_child);
  atexit(end_at_exit); /* runs before the agent's own handler, which was registered first */
}

static atomic_bool asked; /* the signal has asked for a snap that is not yet passed on */

static void pass_on(void) {
  if (ta_emit_snap(0) == TA_OK) atomic_store(&asked, false);
}

static void on_record_signal(int signal) {
  (void)signal;
  ta_agent_begins();
  atomic_store(&asked, true);
  pass_on();
  ta_agent_ends();
}

/* Installs the handler before another program can know that this one records: without a handler the signal would kill it. The
 * program may use the signal for itself afterwards. A signal that already has a handler, or is ignored, stays so. */
static bool take_signal(void) {
  struct sigaction ours = { .sa_handler = on_record_signal, .sa_flags = SA_RESTART }, before;

  return variables.record_signal != 0 && sigaction(variables.record_signal, NULL, &before) == 0 &&
         before.sa_handler == SIG_DFL && sigaction(variables.record_signal, &ours, NULL) == 0;
}

static void give_signal_back(void) {
  sigaction(variables.record_signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

/* Samples are taken by a signal, whatever a thread does: perhaps no call ever checks whether the stream is due. With samples, or
 * with an allocator whose calls we do not see (late.c), the threads start at once; they connect no sooner. */
static bool begins_late(void) {
  return variables.delay_ms != 0 && variables.samples == 0 && ta_heap_is_behind();
}

static int start_session(const struct ta_forward_config *where, const struct ta_emit_config *how) {
  ta_late_open(variables.delay_ms);
  int error = ta_emit_start_late(where, how);
  if (error == TA_OK && !begins_late()) error = ta_emit_run(ta_late_first_try_ns());
  return error;
}

/* Adds the process id to the instance name, which all children inherit. Returns NULL if none is set. */
static const char *child_instance(char *room, size_t n) {
  const char *given = secure_getenv("TRACEAGENT_INSTANCE");

  if (given == NULL) return NULL;
  snprintf(room, n, "%.50s:%ld", given, (long)getpid());
  return room;
}

static int start(bool child) {
  static pthread_once_t once = PTHREAD_ONCE_INIT, named = PTHREAD_ONCE_INIT;
  char instance[64];
  struct ta_forward_config where = {
    .service = variables.service,
    .instance = child ? child_instance(instance, sizeof instance) : NULL,
    .spool_bytes = variables.spool_bytes,
    .log = variables.verbose ? log_line : NULL,
  };
  struct ta_emit_config how = { .version = (unsigned)variables.version,
                                .generation_ms = (unsigned)variables.generation_ms,
                                .stack_depth = (unsigned)variables.stacks,
                                .stack_tables = variables.tables,
                                .samples_hz = (unsigned)variables.samples,
                                .allocfree = (variables.traced & 1u << TA_TRACE_OBJECTS) != 0 };
  ta_counter_ask();
  counts = !atomic_load(&ta_counter_is_off);
  if (!counts) ta_here.agent &= ~(unsigned)TA_BAR_COUNTER;
  bool taken = take_signal();
  int error = start_session(&where, &how);

  if (error != TA_OK && taken) give_signal_back();
  if (error != TA_OK) return error;
  pthread_once(&once, watch_process);
  pthread_once(&named, ta_trace_name_calls); /* a child has its parent's names */
  ta_locks_learn();
  ta_symbols_program(variables.program);
  ta_threads_watch_this();
  if (atomic_load(&asked)) pass_on();
  /* Even without a name: finds the main thread's stack here, not in the middle of a malloc(). */
  ta_thread_attach((variables.traced & 1u << TA_TRACE_THREAD) != 0 ? ta_name_of(variables.program)
                                                                   : 0);
  return TA_OK;
}

static void begin(void *child) {
  int error = start(*(bool *)child);

  if (error == TA_OK && (variables.traced & 1u << TA_TRACE_OBJECTS) != 0) ta_objects_trace_kept();
  begun |= error == TA_OK;
  owner = getpid();
  unsigned late = begins_late() ? 1u << TA_TRACE_LATE : 0;
  atomic_store(&ta_traced, error == TA_OK ? variables.traced | late : 0);
  if (ta_process_is_torn())
    ta_preload_say("not traced: it was forked while the agent was at work");
  else if (error != TA_OK && error != TA_E_OFF)
    ta_preload_say("not traced: %s", ta_strerror(error));
}

void ta_preload_begin(bool child) {
  int before = errno;

  ta_agent_begins();
  ta_on_own_stack(begin, &child);
  ta_agent_ends();
  errno = before;
}

static void stop(void *unused) {
  (void)unused;
  ta_emit_stop_by_outlook((int64_t)variables.exit_ms, variables.exit_ms / PATIENCE_OF_EXIT);
}

/* A child that was not made by fork() leaves its parent's session alone. */
static void end(void (*abandon)(void)) {
  int before = errno;

  if ((ta_here.agent & TA_BAR_CALLS) != 0 || !ta_late_is_owner()) return;
  bool allowed = (ta_here.agent & TA_BAR_COUNTER) != 0 && ta_counter_allow();
  ta_agent_begins();
  unsigned traced = atomic_exchange(&ta_traced, 0);
  bool late = (traced & 1u << TA_TRACE_LATE) != 0;
  if (late && !atomic_load(&asked) && !ta_late_is_worth_a_stream()) {
    abandon();
    if (variables.verbose)
      ta_preload_say("no stream: the program ended within TRACEAGENT_DELAY_MS=%llu",
                     (unsigned long long)variables.delay_ms);
  } else if (traced != 0) {
    ta_on_own_stack(stop, NULL);
  }
  ta_agent_ends();
  if (allowed) ta_counter_forbid();
  errno = before;
}

static void emit_abandon(void *unused) {
  (void)unused;
  ta_emit_abandon();
}

static void abandon(void) {
  ta_on_own_stack(emit_abandon, NULL);
}

void ta_preload_end(void) {
  end(abandon);
}

/* Without a spool folder no trace is kept: a short program need not wait until a stack is mapped. */
static void abandon_at_exit(void) {
  if (getenv("TRACEAGENT_SPOOL_DIR") != NULL)
    abandon();
  else
    ta_emit_abandon_at_exit();
}

static void end_at_exit(void) {
  end(abandon_at_exit);
}

/* An exec() waits for acks only if there is a connection, or is about to be. */
static bool may_be_acked(void) {
  struct ta_forward_status status = { .size = sizeof status };

  return ta_emit_forward_status(&status) == TA_OK &&
         (status.state == TA_STATE_STREAMING || status.state == TA_STATE_CONNECTING);
}

bool ta_preload_is_on(void) {
  return atomic_load(&ta_traced) != 0 && getpid() == owner;
}

void ta_preload_leave(const char *why) {
  uint64_t exit_ms = variables.exit_ms;

  ta_agent_begins();
  variables.exit_ms = may_be_acked() ? exit_ms / PATIENCE_OF_EXEC : 0;
  ta_spool_closes_by(why);
  ta_preload_end();
  variables.exit_ms = exit_ms;
  ta_agent_ends();
}

void ta_preload_stay(void) {
  ta_spool_closes_by(NULL);
  ta_preload_begin(false);
}

bool ta_preload_counts(void) {
  return counts;
}

bool ta_preload_follows_forks(void) {
  return begun && variables.forks;
}

bool ta_preload_is_verbose(void) {
  return variables.verbose;
}

static bool is_wanted(void) {
  if (ta_is_switched_off()) return false;
  if (fstat(STDERR_FILENO, &stderr_at_start) != 0) stderr_at_start.st_ino = 0;
  if (ta_variables_read(&variables)) return !variables.other;
  ta_preload_say("not traced: %s", variables.fault);
  return false;
}

/* Most programs that inherit the environment are excluded here: nothing is created or changed before. */
__attribute__((constructor)) static void decide(void) {
  int before = errno;

  ta_real_find(); /* here the stack is large enough */
  ta_versions_find();
  ta_own_stack_find(); /* later another thread may close libraries */
  if (is_wanted()) {
    ta_caught_install = *TA_REAL_SLOT(sigaction);
    ta_emit_deserted = ta_preload_end;
    ta_threads_watch();
    ta_openssl_late();
    ta_agent_begins();
    begin(&(bool){ false });
    ta_agent_ends();
  } else {
    atomic_store(&ta_traced, 0);
  }
  errno = before;
}
