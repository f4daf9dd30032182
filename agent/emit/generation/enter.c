/* SPDX-License-Identifier: Apache-2.0 */
/* The slow paths into a section: a thread's first section ever, and its first in each generation. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "agent/emit/core/initial_threads.h"
#include "agent/emit/events/act.h"
#include "agent/emit/events/spawn.h"
#include "agent/emit/events/waiters.h"
#include "agent/emit/generation/memory.h"
#include "agent/emit/generation/samples.h"
#include "agent/emit/stacks/frames.h"
#include "agent/host/keep.h"
#include "agent/host/process.h"
#include "traceagent.h"

__thread bool ta_in_hook __attribute__((tls_model("initial-exec")));
static __thread uint32_t chosen_name __attribute__((tls_model("initial-exec")));
static __thread bool ends __attribute__((tls_model("initial-exec")));
/* Our destructor has run; destructors of others may still run and emit. */
static __thread bool ended __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static bool key_made;

static uint32_t thread_name(void) {
  char name[16] = "";

  if (chosen_name != 0) return chosen_name;
  pthread_getname_np(pthread_self(), name, sizeof name);
  return ta_names_find(name, strlen(name));
}

static void enter_open_batches(struct ta_thread *t, uint32_t gen) {
  t->at = &t->open_batches[gen & 1];
  t->clock = ta_emit.clock[gen & 1];
  atomic_store_explicit(&t->gen, gen, memory_order_release);
  t->running_gen = t->hold == TA_HOLDS_RUNNING ? gen : TA_NO_GEN;
}

static void put_stack(struct ta_thread *t, enum ta_memory what) {
  if (t->stack.high != 0) ta_memory_put(t, what, t->stack.low, t->stack.high - t->stack.low, 0);
}

static void find_stack(struct ta_thread *t) {
  bool wanted = ta_emit.stack_depth != 0 || ta_samples_are_on() || ta_emit.allocfree;

  if (wanted) ta_frames_bounds(t);
}

static struct ta_go *take_go(uint32_t name) {
  ta_emit_lock();
  struct ta_go *go = ta_goes_acquire(name);
  ta_emit_unlock();
  return go;
}

/* Leaves the session again: the thread got no goroutine. */
static bool leave_session(struct ta_thread *t) {
  ta_put(t, TW_EV_PROC_STOP, 0, 0, 0, 0, 0);
  t->session = 0;
  return false;
}

/* A new thread starts the idle proc of its place, and runs the goroutine that its creator reported for it, or a new one. */
static bool join_session(struct ta_thread *t, uint32_t gen) {
  uint32_t name = thread_name();
  struct ta_go *reported = ta_spawned_take(), *own = reported != NULL ? reported : take_go(name);
  uint64_t seq;

  if (own == NULL) return false;
  t->session = ta_emit.session;
  t->own = own;
  t->hold = TA_HOLDS_NOTHING;
  t->nested = t->pause_gen = 0;
  t->sweeps = 0;
  t->next_id = t->ids_end = 0;
  find_stack(t);
  if (t->time < ta_emit.origin) t->time = ta_emit.origin;
  atomic_store_explicit(&t->system_id, (uint64_t)gettid(), memory_order_relaxed);
  atomic_store_explicit(&t->before_gen, 0, memory_order_relaxed);
  enter_open_batches(t, gen);
  atomic_store(&t->claim, gen);

  ta_put_proc_start(t, ta_now(t));
  /* Never TA_LATE: its creator was in no later generation. But the creator may have ended the goroutine. */
  if (reported != NULL &&
      ta_change(t, reported, TA_FROM(TW_GO_RUNNABLE), TW_GO_RUNNING, 1, &seq) != TA_CHANGED) {
    reported = NULL;
    t->own = own = take_go(name);
    if (own == NULL) return leave_session(t);
  }
  if (reported == NULL) {
    seq = 1;
    ta_put(t, TW_EV_GO_CREATE, 3, ta_go_id(own), ta_name_stack(t, own), 0, 0);
    struct ta_doing runs = { .gen = gen, .seq = 1, .status = TW_GO_RUNNING };
    atomic_store_explicit(&own->word, ta_doing_word(runs), memory_order_release);
  }
  ta_put_then(t, TW_EV_GO_START, 2, ta_go_id(own), seq);
  ta_hold(t, own, TA_HOLDS_RUNNING);
  if (ta_emit.allocfree)
    put_stack(t, ta_initial_threads_has(gettid()) ? TA_STACK_EXISTS : TA_STACK_ALLOC);
  if (ta_samples_are_on()) ta_samples_arm(t);
  return true;
}

/* A thread that wrote nothing in the generation before stores the state that it held there, for the flusher. */
static void enter_next_gen(struct ta_thread *t, uint32_t gen) {
  if (atomic_load_explicit(&t->claim, memory_order_relaxed) + 1 < gen) {
    uint64_t now = atomic_load_explicit(&t->now, memory_order_relaxed);
    atomic_store_explicit(&t->before, now, memory_order_relaxed);
    atomic_store_explicit(&t->before_gen, gen - 1, memory_order_relaxed);
  }
  find_stack(t);
  enter_open_batches(t, gen);
  atomic_exchange(&t->claim, gen);
  if (t->hold == TA_HOLDS_NOTHING) {
    if (t->sweeps != 0) ta_put_proc_status(t, TW_PROC_IDLE);
    return;
  }

  /* Only this thread changes a goroutine that runs on it. */
  struct ta_doing d = ta_doing(atomic_load_explicit(&t->go->word, memory_order_relaxed));
  bool runs = t->hold == TA_HOLDS_RUNNING;
  ta_put_proc_status(t, runs ? TW_PROC_RUNNING : TW_PROC_SYSCALL);
  ta_put_go_status(t, t->go, runs ? TW_GO_RUNNING : TW_GO_SYSCALL, d.assists);
  atomic_store_explicit(&t->go->word, ta_doing_word(ta_doing_in(d, gen)), memory_order_release);
}

/* Returns the generation to enter; 0: the session is over. The thread stores the generation before it reads left_behind, and
 * the flusher does the reverse (generation.c): so at least one sees the other's store. If the flusher has already ended this
 * generation without the thread, the thread enters a later one. */
static uint32_t choose_gen(struct ta_thread *t, bool *out_behind) {
  for (;;) {
    uint32_t gen = ta_gen_now(), since;
    if (gen == 0) return 0;
    atomic_store(&t->gen, gen);
    since = atomic_load(&t->left_behind);
    *out_behind = since != 0;
    if (since == 0 || since == TA_COMES_BACK) return gen;
    if (since < gen && atomic_compare_exchange_strong(&t->left_behind, &since, TA_COMES_BACK))
      return gen;
  }
}

static void end_silently(struct ta_go *go, uint32_t gen) {
  struct ta_doing dead = { .gen = gen, .status = TA_GO_DEAD };

  atomic_store(&go->word, ta_doing_word(dead));
}

/* For a thread that was left behind: its goroutine is no longer in the trace, and nothing reads what it wrote in the lost
 * generation. A fiber that the thread had just left may already run on another thread. */
static void forget_generation(struct ta_thread *t, uint32_t gen) {
  bool same_session = t->session == ta_emit.session;

  ta_drop_open_batches(t, same_session);
  atomic_store(&ta_misuse_unreported, true); /* ends may follow whose begins are forgotten */
  atomic_store_explicit(&t->now, 0, memory_order_relaxed);
  if (!same_session) return;
  ta_waiters_remove(t);
  end_silently(t->own, gen);
  if (t->go != t->own && t->hold != TA_HOLDS_NOTHING) end_silently(t->go, gen);
  t->session = 0;
}

/* Until left_behind is cleared, an older generation may leave the thread behind again; the thread takes no part in that one. */
static void finish_coming_back(struct ta_thread *t, uint32_t gen) {
  uint32_t since = TA_COMES_BACK;

  while (!atomic_compare_exchange_strong(&t->left_behind, &since, 0))
    if (since >= gen) return; /* the entered generation has left the thread behind */
}

static bool enter_next_gen_or_join(struct ta_thread *t, uint32_t gen) {
  bool known = t->stack.high != 0;

  if (t->session != ta_emit.session) return join_session(t, gen);
  enter_next_gen(t, gen);
  if (ta_emit.allocfree && !known) put_stack(t, TA_STACK_EXISTS);
  return true;
}

struct ta_thread *ta_enter_gen(struct ta_thread *t) {
  KEEP_ERRNO;
  bool behind = false;
  uint32_t gen = choose_gen(t, &behind);

  if (gen == 0) {
    ta_leave(t);
    return NULL;
  }
  if (behind) forget_generation(t, gen);
  bool in = enter_next_gen_or_join(t, gen);
  if (behind) finish_coming_back(t, gen);
  if (!in) {
    atomic_store(&t->gen, 0); /* the next call tries again */
    atomic_fetch_add_explicit(&t->dropped, 1, memory_order_relaxed);
    ta_leave(t);
    return NULL;
  }
  if (t->hold == TA_HOLDS_RUNNING) ta_act_workers(t);
  return t;
}

struct ta_thread *ta_enter_running_slowly(struct ta_thread *t) {
  if (t == NULL)
    t = ta_enter_new();
  else if (ta_gen_now() != ta_gen(t))
    t = ta_enter_gen(t);
  if (t == NULL || t->hold == TA_HOLDS_RUNNING) return t;
  ta_misuse(t, "a call for running threads, from a thread that waits or is in a system call");
  ta_leave(t);
  return NULL;
}

/* The thread's end. */

static void end_in_session(struct ta_thread *t, const void *from) {
  t->nested = 0;
  if (t->hold == TA_HOLDS_SYSCALL) ta_act_call_end(t, ta_now(t));
  while (t != NULL && t->hold == TA_HOLDS_NOTHING && ta_act_wait_end(t) == TA_LATE) t = ta_again(t);
  if (t == NULL) return;
  ta_act_pause_end(t);
  while (t != NULL && t->go != t->own &&
         ta_act_leave_fiber(t, TA_WAITS, TA_NAME_FIBER, from) == TA_LATE)
    t = ta_again(t);
  if (t == NULL) return;
  if (t->hold == TA_HOLDS_RUNNING) {
    ta_act_close_ranges(t, from);
    ta_act_sweep_end(t, 0, 0);
    ta_act_destroy(t, TW_EV_GO_DESTROY, 0, 0, 0);
    if (ta_emit.allocfree) put_stack(t, TA_STACK_FREE);
    ta_put(t, TW_EV_PROC_STOP, 0, 0, 0, 0, 0);
  }
  ta_post_open_batches(t->at);
  ta_leave(t);
}

static void end_thread(void *self) {
  KEEP_ERRNO;
  struct ta_thread *t = self;

  if (t != ta_self) return;  /* in a forked child: a thread of the parent */
  atomic_store(&t->busy, 0); /* a section that was cut off in the middle is over */
  t->holds = 0;
  ta_samples_disarm(t);
  if (ta_enter() == t) end_in_session(t, TA_CALLER);
  ta_samples_disarm(t); /* ta_enter() arms a thread that joins the session only now */
  ta_self = NULL;
  ta_threads_release(t);
}

/* Other keys' destructors free memory, which allocfree should trace. So the first call sets the key again: glibc then calls it
 * once more, after all others have run once. */
static void end_at_exit(void *self) {
  if (ta_emit.allocfree && !ends) {
    ends = true;
    if (pthread_setspecific(key, self) == 0) return;
  }
  ended = true;
  ta_process_first_leaves();
  end_thread(self);
}

static void make_key(void) {
  key_made = pthread_key_create(&key, end_at_exit) == 0;
}

void ta_enter_prepare(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, make_key);
}

/* In a hook nothing may be allocated, and glibc allocates the values of all but the first 32 keys when one is set. */
static bool may_watch_end(void) {
  enum { KEYS_WITHOUT_MEMORY = 32 };

  return key_made && (!ta_in_hook || key < KEYS_WITHOUT_MEMORY);
}

struct ta_thread *ta_enter_new(void) {
  KEEP_ERRNO;

  if (ended) return NULL;
  ta_enter_prepare();
  struct ta_thread *t = may_watch_end() ? ta_threads_acquire() : NULL;
  if (t != NULL && pthread_setspecific(key, t) != 0) {
    ta_threads_release(t);
    t = NULL;
  }
  if (t == NULL) {
    atomic_fetch_add_explicit(&ta_emit.untraced, 1, memory_order_relaxed);
    return NULL;
  }
  ta_self = t;
  ta_fence_light(&t->busy);
  return ta_enter_gen(t);
}

/* Public. */

void ta_thread_attach(ta_name name) {
  struct ta_thread *t;

  name = ta_name_known(name);
  if (name != 0) chosen_name = name;
  if ((t = ta_enter()) == NULL) return;
  if (name != 0 && atomic_load_explicit(&t->own->name, memory_order_relaxed) != name) {
    ta_go_name(t->own, name);
    if (t->go == t->own) ta_hold(t, t->go, t->hold);
  }
  ta_leave(t);
}

void ta_thread_detach(void) {
  if (ta_self == NULL) return;
  pthread_setspecific(key, NULL);
  end_thread(ta_self);
}
