/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: a thread's creator writes its goroutine, under the name of the function that it runs, until it is given another name.
 * The name is looked up later: a thread that waits for this one to create another may hold the loader's lock. */
#include "agent/emit/core/names.h"
#include "agent/emit/stacks/frames.h"
#include "agent/host/process.h"
#include "agent/preload/preload.h"

static pthread_key_t ends;
static bool ends_made;

/* Once the first thread has ended by pthread_exit(), the process ends with the last of the program's threads. That thread must
 * also end after the agent's: the last one runs the handlers of exit(), and the agent's threads have other descriptors. */
static void leave(void) {
  ta_process_first_leaves();
  if (!ta_process_first_has_left() || !ta_process_leaves_none()) return;
  ta_preload_end();
  ta_process_be_last();
}

/* Runs whenever a thread ends, by pthread_exit() and cancellation, too. self: the thread. */
static void write_end(void *self) {
  if ((ta_here.agent & TA_BARS) != 0) return;
  if (ta_traces(TA_TRACE_JOIN) && ta_is_waited_for(self))
    ta_trace_wake(TA_CALL_pthread_exit, self, TA_WAKE_ALL, TA_FRAME);
  if (!ta_preload_is_on()) return;
  ta_agent_begins();
  ta_spawned_is_over();
  leave();
  ta_agent_ends();
}

void ta_threads_watch(void) {
  ends_made = pthread_key_create(&ends, write_end) == 0;
  ta_enter_prepare();
}

void ta_threads_watch_this(void) {
  if (ends_made) pthread_setspecific(ends, TA_OF_THREAD(pthread_self()));
}

/* If any of these is set, a new thread begins in our code. */
enum { BEGINS = 1u << TA_TRACE_THREAD | 1u << TA_TRACE_STACKS | 1u << TA_TRACE_LATE };

/* The argument of a new thread. */
struct start {
  union {
    void *(*posix)(void *);
    thrd_start_t c11;
  } run;
  void *arg;
  ta_name name;
  struct ta_spawned birth;
  bool agents; /* one of the agent's own */
  struct ta_parting parting;
  bool inside;   /* an allocator creates it, for itself */
  unsigned bars; /* inherited from its creator */
};

/* Runs first on a new thread. The bounds of its stack are found here: later it may be inside its allocator. */
static struct start begin(void *self) {
  struct start *handed = self, s = *handed;

  ta_agent_begins();
  free(handed);
  if (s.agents) {
    ta_descriptors_part(s.parting, ta_preload_is_verbose());
    return s;
  }
  if (s.inside) ta_here.inside++;
  ta_here.agent |= s.bars;
  if (s.bars != 0) {
    ta_agent_ends();
    return s;
  }
  ta_spawned_is_mine(s.birth);
  unsigned traced = atomic_load(&ta_traced);
  if ((traced & 1u << TA_TRACE_STACKS) != 0) ta_frames_learn();
  if ((traced & 1u << TA_TRACE_THREAD) != 0) ta_thread_attach(s.name);
  ta_threads_watch_this();
  ta_agent_ends();
  return s;
}

static void *live(void *self) {
  struct start s = begin(self);

  return s.run.posix(s.arg);
}
static int live_c11(void *self) {
  struct start s = begin(self);

  return s.run.c11(s.arg);
}

/* Allocates the argument of a thread that does not exist yet. function: NULL if the thread is not traced. Returns NULL if memory
 * cannot be allocated. */
static struct start *hand(struct start s, const void *function) {
  ta_agent_begins();
  struct start *handed = malloc(sizeof *handed);
  if (handed != NULL) *handed = s;
  if (handed != NULL && function != NULL) handed->name = ta_names_of_function(function);
  ta_agent_ends();
  return handed;
}

static void take_back(struct start *handed) {
  ta_agent_begins();
  ta_spawned_fail(handed->birth);
  free(handed);
  ta_agent_ends();
}

TA_API int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg) {
  struct start s = {
    .run.posix = start, .arg = arg, .agents = ta_is_agents(), .inside = ta_here.inside != 0
  };

  if (!s.agents) s.bars = ta_here.agent & TA_BAR_COUNTER;

  if (!s.agents && ta_is_late()) ta_late_look();
  if (!s.agents && s.bars == 0 && !ta_traces_any(BEGINS))
    return TA_REAL(pthread_create)(out, attr, start, arg);
  bool traced = !s.agents && ta_traces(TA_TRACE_THREAD);
  if (s.agents) s.parting = ta_descriptors_prepare();
  struct start *handed = hand(s, traced ? *(void **)&start : NULL);
  if (handed == NULL) return EAGAIN;
  if (traced) handed->birth = ta_trace_thread_start(TA_CALL_pthread_create, handed->name, TA_FRAME);
  ta_here.inside++;
  int error = TA_REAL(pthread_create)(out, attr, live, handed);
  ta_here.inside--;
  if (error != 0) take_back(handed);
  return error;
}

TA_API int thrd_create(thrd_t *out, thrd_start_t start, void *arg) {
  struct start s = { .run.c11 = start, .arg = arg, .inside = ta_here.inside != 0 };

  s.bars = ta_here.agent & TA_BAR_COUNTER;
  if (s.bars == 0 && !ta_traces_any(BEGINS)) return TA_REAL(thrd_create)(out, start, arg);
  bool traced = ta_traces(TA_TRACE_THREAD);
  struct start *handed = hand(s, traced ? *(void **)&start : NULL);
  if (handed == NULL) return thrd_nomem;
  if (traced) handed->birth = ta_trace_thread_start(TA_CALL_thrd_create, handed->name, TA_FRAME);
  ta_here.inside++;
  int error = TA_REAL(thrd_create)(out, live_c11, handed);
  ta_here.inside--;
  if (error != thrd_success) take_back(handed);
  return error;
}

/* The name of another thread is read when that thread is first seen. */
TA_API int pthread_setname_np(pthread_t thread, const char *name) {
  int error = TA_REAL(pthread_setname_np)(thread, name);

  if (error != 0 || !ta_traces(TA_TRACE_THREAD) || !pthread_equal(thread, pthread_self()))
    return error;
  ta_agent_begins();
  ta_thread_attach(ta_name_of(name));
  ta_agent_ends();
  return 0;
}
