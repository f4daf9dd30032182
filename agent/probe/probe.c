/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of tracepoints. An event has a list of probes, which are added at its end and removed under the lock.
 *
 * Readers follow the list without a lock. A removed probe still points to the next one, so that a thread that is at the
 * removed probe finds the rest of the list; it can be reused once no thread can be at it (agent/probe/quiet.h). */
#include "agent/probe/quiet.h"
#include "traceprobe.h"

#include <pthread.h>

#include "agent/host/keep.h"
#include "agent/host/pin.h"
#include "agent/probe/call.h"

const char ta_trace_abi_2 = 0;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool held; /* this thread has the lock */

/* Probes that were removed from their lists, and perhaps still run. If they were detached within a probe, they wait here for
 * an unlock outside of all probes. */
static struct ta_probe *detached;

/* Unlocks that wait for removed probes, on their threads' stacks. A forked child has none of these threads, and takes over
 * their probes. */
struct waiting {
  struct ta_probe *gone;
  struct waiting *next;
};
static struct waiting *waiting;
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER; /* taken after `lock` */

static struct ta_probe *load(struct ta_probe *const *at) {
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void store(struct ta_probe **at, struct ta_probe *probe) {
  __atomic_store_n(at, probe, __ATOMIC_RELEASE);
}

/* After fork() the child has whole lists, and only the forking thread. */

static bool fork_locked;

static void before_fork(void) {
  if (!held) {
    pthread_mutex_lock(&lock);
    fork_locked = true;
  }
  pthread_mutex_lock(&waiting_lock);
}

static void after_fork(void) {
  pthread_mutex_unlock(&waiting_lock);
  if (!fork_locked) return;
  fork_locked = false;
  pthread_mutex_unlock(&lock);
}

static void take_over(void) {
  for (struct waiting *w = waiting; w != NULL; w = w->next)
    while (w->gone != NULL) {
      struct ta_probe *probe = w->gone;
      w->gone = probe->next_detached;
      probe->next_detached = detached;
      detached = probe;
    }
  waiting = NULL;
}

static void in_child(void) {
  fork_locked = false;
  waiting_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  take_over();
  lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  if (held) pthread_mutex_lock(&lock);
  ta_quiet_forget();
}

static void watch_fork(void) {
  pthread_atfork(before_fork, after_fork, in_child);
}

int ta_lock(void) {
  KEEP_ERRNO;
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  if (held) return TA_E_MISUSE;
  if (!ta_pin()) return TA_E_NOMEM;
  pthread_once(&once, watch_fork);
  pthread_mutex_lock(&lock);
  held = true;
  ta_quiet_ready();
  return TA_OK;
}

static void make_new(struct ta_probe *probe) {
  store(&probe->next, NULL); /* a thread may be reading it */
  probe->next_detached = NULL;
  __atomic_store_n(&probe->at, NULL, __ATOMIC_RELEASE);
}

static void begin_waiting(struct waiting *w) {
  pthread_mutex_lock(&waiting_lock);
  w->next = waiting;
  waiting = w;
  pthread_mutex_unlock(&waiting_lock);
}

static void end_waiting(struct waiting *w) {
  struct waiting **link = &waiting;

  pthread_mutex_lock(&waiting_lock);
  while (w->gone != NULL) {
    struct ta_probe *next = w->gone->next_detached;
    make_new(w->gone);
    w->gone = next;
  }
  while (*link != w) link = &(*link)->next;
  *link = w->next;
  pthread_mutex_unlock(&waiting_lock);
}

int ta_unlock(void) {
  KEEP_ERRNO;
  struct waiting w = { NULL, NULL };

  if (!held) return TA_E_MISUSE;
  held = false;
  if (!ta_quiet_inside()) {
    w.gone = detached;
    detached = NULL;
  }
  bool waits = w.gone != NULL;
  if (waits) begin_waiting(&w);
  pthread_mutex_unlock(&lock); /* a running probe may need it before it can return */
  if (!waits) return TA_OK;
  ta_quiet_wait();
  end_waiting(&w);
  return TA_OK;
}

/* Returns the link that points to the probe, or the last link of the list. */
static struct ta_probe **link_to(struct ta_tracepoint *at, const struct ta_probe *probe) {
  struct ta_probe **link = &at->first;

  while (*link != NULL && *link != probe) link = &(*link)->next;
  return link;
}

static bool is_attached(const struct ta_probe *probe) {
  return probe != NULL && probe->at != NULL && *link_to(probe->at, probe) == probe;
}

static void join(struct ta_probe_group *group, struct ta_probe *probe) {
  probe->group = group;
  probe->next_of_group = group->first;
  group->first = probe;
}

static bool may_attach(const struct ta_tracepoint *at, const struct ta_probe *probe) {
  return held && at != NULL && probe != NULL &&
         __atomic_load_n(&probe->at, __ATOMIC_ACQUIRE) == NULL;
}

static int attach(struct ta_probe_group *group, struct ta_tracepoint *at, struct ta_probe *probe) {
  probe->at = at;
  if (group != NULL) join(group, probe);
  store(link_to(at, NULL), probe); /* from now on the probe is called */
  return TA_OK;
}

/* A thread may read next at any time: so it is stored atomically. */
static void fill(struct ta_probe *probe, ta_probe_fn *fn, void *self) {
  probe->fn = fn;
  probe->self = self;
  probe->group = NULL;
  probe->next_of_group = probe->next_detached = NULL;
  probe->call = NULL;
  probe->call_self = NULL;
  store(&probe->next, NULL);
}

int ta_probe_attach(struct ta_probe_group *group, struct ta_tracepoint *at, struct ta_probe *probe,
                    ta_probe_fn *fn, void *self) {
  if (!may_attach(at, probe) || fn == NULL) return TA_E_MISUSE;
  fill(probe, fn, self);
  return attach(group, at, probe);
}

int ta_call_attach(struct ta_probe_group *group, struct ta_tracepoint *at, struct ta_probe *probe,
                   ta_call_fn *fn, void *self) {
  if (!may_attach(at, probe) || fn == NULL || at->pack == NULL) return TA_E_MISUSE;
  fill(probe, at->pack, probe);
  probe->call = fn;
  probe->call_self = self;
  return attach(group, at, probe);
}

static void leave_group(struct ta_probe *probe) {
  if (probe->group == NULL) return;
  struct ta_probe **link = &probe->group->first;
  while (*link != probe) link = &(*link)->next_of_group;
  *link = probe->next_of_group;
  probe->group = NULL;
}

int ta_probe_detach(struct ta_probe *probe) {
  if (!held || !is_attached(probe)) return TA_E_MISUSE;
  store(link_to(probe->at, probe), probe->next);
  leave_group(probe);
  probe->next_detached = detached;
  detached = probe;
  return TA_OK;
}

int ta_probe_group_add(struct ta_probe_group *group, struct ta_probe *probe) {
  if (!held || group == NULL || !is_attached(probe) || probe->group != NULL) return TA_E_MISUSE;
  join(group, probe);
  return TA_OK;
}

int ta_probe_group_done(struct ta_probe_group *group) {
  int error = group == NULL ? TA_E_MISUSE : ta_lock();

  if (error != TA_OK) return error;
  while (group->first != NULL) ta_probe_detach(group->first);
  return ta_unlock();
}

struct ta_probe *ta_probe_next(const struct ta_probe *probe) {
  return probe == NULL ? NULL : load(&probe->next);
}

static __thread const struct ta_passing *passing;

const struct ta_probe *ta_passing_begin(const struct ta_tracepoint *at, struct ta_passing *here) {
  if (here == NULL) return NULL;
  ta_quiet_enter();
  here->outer = passing;
  passing = here;
  return at == NULL ? NULL : load(&at->first);
}

void ta_passing_end(const struct ta_passing *here) {
  if (here == NULL || !ta_quiet_inside()) return;
  passing = here->outer;
  ta_quiet_leave();
}

const struct ta_passing *ta__passing(void) {
  return passing;
}
