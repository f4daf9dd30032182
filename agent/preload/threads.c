/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: each is there from its first moment, under the name of the function it runs, until it is given another. That
 * is looked up later, and not here: the loader's lock may be held by whoever waits for the thread that creates this one. */
#include "agent/emit/names.h"
#include "agent/preload/preload.h"

static pthread_key_t ends;
static bool ends_made;

/* Of those that end by pthread_exit() or are cancelled, too. Its value is the thread. */
static void say_end(void *self) {
  if (ta_tells(TA_TELL_JOIN) && ta_is_waited_for(self))
    ta_tell_wake(TA_CALL_pthread_exit, self, TA_WAKE_ALL, TA_FRAME);
}

void ta_threads_watch(void) {
  ends_made = pthread_key_create(&ends, say_end) == 0;
}

void ta_threads_watch_this(void) {
  if (ends_made) pthread_setspecific(ends, TA_OF_THREAD(pthread_self()));
}

struct birth {
  void *(*start)(void *);
  void *arg;
  ta_name name;
  bool agents; /* one of the agent's own */
};

static void *live(void *self) {
  struct birth *birth = self, b = *birth;

  ta_agent_begins();
  free(birth);
  if (b.agents) {
    ta_descriptors_part(ta_preload_is_verbose());
  } else {
    if ((atomic_load(&ta_told) & 1u << TA_TELL_THREAD) != 0) ta_thread_attach(b.name);
    ta_threads_watch_this();
    ta_agent_ends();
  }
  return b.start(b.arg);
}

TA_API int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg) {
  bool agents = ta_is_agents();

  if (!agents && !ta_tells(TA_TELL_THREAD)) return TA_REAL(pthread_create)(out, attr, start, arg);
  ta_agent_begins();
  struct birth *birth = malloc(sizeof *birth);
  if (birth != NULL)
    *birth =
        (struct birth){ start, arg, agents ? 0 : ta_names_of_function(*(void **)&start), agents };
  ta_agent_ends();
  if (birth == NULL) return EAGAIN;
  int error = TA_REAL(pthread_create)(out, attr, live, birth);
  if (error != 0) {
    ta_agent_begins();
    free(birth);
    ta_agent_ends();
  }
  return error;
}

/* Of another thread the name is taken when it is first seen. */
TA_API int pthread_setname_np(pthread_t thread, const char *name) {
  int error = TA_REAL(pthread_setname_np)(thread, name);

  if (error != 0 || !ta_tells(TA_TELL_THREAD) || !pthread_equal(thread, pthread_self()))
    return error;
  ta_agent_begins();
  ta_thread_attach(ta_name_of(name));
  ta_agent_ends();
  return 0;
}
