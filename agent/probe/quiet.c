/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/quiet.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "agent/emit/core/fence.h"
#include "agent/host/keep.h"

/* Without a fence a reader's word may still be in the store buffer of its processor. The buffer drains by itself in less
 * than a microsecond, and when the thread is interrupted. */
enum { READERS_MAX = 1024, NAP_NS = 2000, NAP_NS_MAX = 1000000, NO_FENCE_NAP_NS = 10000000 };

/* A place: one thread writes its word, and only waiters read it. */
struct reader {
  atomic_uint word; /* odd: the thread is inside a section */
  atomic_bool taken;
} __attribute__((aligned(64)));

static struct reader readers[READERS_MAX];
static atomic_uint readers_end;

/* Threads without a place that are inside, counted by the round in which they entered. */
static atomic_uint crowd[2], round_now;

/* PLACELESS: also after our destructor, since destructors of others may still pass tracepoints. */
enum standing { UNKNOWN, PLACED, PLACELESS };

static pthread_mutex_t one_waits = PTHREAD_MUTEX_INITIALIZER;

static __thread struct own {
  struct reader *place;
  enum standing standing;
  unsigned depth, round;
} own __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static bool key_made;

/* Runs when a thread ends: perhaps inside a section, in a probe that ends the thread. */
static void give_back(void *place) {
  struct reader *r = place;
  unsigned word = atomic_load_explicit(&r->word, memory_order_relaxed);

  own.standing = PLACELESS;
  atomic_signal_fence(memory_order_seq_cst);
  own.place = NULL;
  own.depth = 0;
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&r->word, (word + 1) & ~1u, memory_order_release);
  atomic_store_explicit(&r->taken, false, memory_order_release);
}

static void make_key(void) {
  key_made = pthread_key_create(&key, give_back) == 0;
}

static struct reader *free_place(void) {
  for (unsigned i = 0; i < READERS_MAX; i++) {
    if (atomic_load_explicit(&readers[i].taken, memory_order_relaxed)) continue;
    if (atomic_exchange(&readers[i].taken, true)) continue;
    unsigned end = atomic_load(&readers_end);
    while (end <= i && !atomic_compare_exchange_weak(&readers_end, &end, i + 1)) {
    }
    return &readers[i];
  }
  return NULL;
}

static void find_place(void) {
  KEEP_ERRNO;
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  own.standing = PLACELESS; /* for a signal handler that interrupts us, too */
  pthread_once(&once, make_key);
  struct reader *r = key_made ? free_place() : NULL;
  if (r == NULL) return;
  if (pthread_setspecific(key, r) != 0) {
    atomic_store(&r->taken, false);
    return;
  }
  own.place = r;
  own.standing = PLACED;
}

/* A signal handler may interrupt enter and leave between any two lines, and enter a section of its own. With a place, depth
 * is set first and reset first; each store makes the word odd or even, whatever its value is by then; and a handler that
 * is nested in a section that has not quite begun begins it. Without a place, depth is set after the section is counted,
 * and reset before the count is undone: so a nested handler is always counted. round is valid only while depth is not 0. */

static void be_inside(struct reader *r) {
  unsigned word = atomic_load_explicit(&r->word, memory_order_relaxed);

  ta_fence_store(&r->word, (word + 1) | 1);
}

static void enter_nested(void) {
  own.depth++;
  if (own.standing != PLACED) return;
  if ((atomic_load_explicit(&own.place->word, memory_order_relaxed) & 1) == 0) be_inside(own.place);
}

void ta_quiet_enter(void) {
  if (own.depth > 0) {
    enter_nested();
    return;
  }
  if (TB_UNLIKELY(own.standing == UNKNOWN)) find_place();
  if (TB_LIKELY(own.standing == PLACED)) {
    own.depth = 1;
    atomic_signal_fence(memory_order_seq_cst);
    be_inside(own.place);
    return;
  }
  unsigned round = atomic_load(&round_now) & 1;
  atomic_fetch_add(&crowd[round], 1);
  atomic_signal_fence(memory_order_seq_cst);
  own.depth = 1;
  atomic_signal_fence(memory_order_seq_cst);
  own.round = round;
}

void ta_quiet_leave(void) {
  if (own.depth > 1) {
    own.depth--;
    return;
  }
  if (TB_LIKELY(own.standing == PLACED)) {
    unsigned word = atomic_load_explicit(&own.place->word, memory_order_relaxed);
    own.depth = 0;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&own.place->word, (word + 1) & ~1u, memory_order_release);
  } else {
    unsigned round = own.round;
    own.depth = 0;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_fetch_sub(&crowd[round], 1);
  }
}

bool ta_quiet_inside(void) {
  return own.depth > 0;
}

void ta_quiet_ready(void) {
  ta_fence_choose();
}

static void nap(long *ns) {
  nanosleep(&(struct timespec){ .tv_nsec = *ns }, NULL);
  if (*ns < NAP_NS_MAX) *ns *= 2;
}

static void wait_for_reader(const struct reader *r) {
  unsigned word = atomic_load_explicit(&r->word, memory_order_acquire);

  if ((word & 1) == 0) return;
  for (long ns = NAP_NS; atomic_load_explicit(&r->word, memory_order_acquire) == word;) nap(&ns);
}

static void wait_for_crowd(void) {
  unsigned before = atomic_fetch_add(&round_now, 1) & 1;

  for (long ns = NAP_NS; atomic_load(&crowd[before]) != 0;) nap(&ns);
}

void ta_quiet_wait(void) {
  KEEP_ERRNO;

  pthread_mutex_lock(&one_waits);
  if (!ta_fence_heavy()) nap(&(long){ NO_FENCE_NAP_NS });
  unsigned end = atomic_load(&readers_end);
  for (unsigned i = 0; i < end; i++) wait_for_reader(&readers[i]);
  /* Twice, once for each round: a thread that read the round before the first wait changed it may still be counted there. */
  wait_for_crowd();
  wait_for_crowd();
  pthread_mutex_unlock(&one_waits);
}

void ta_quiet_forget(void) {
  one_waits = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  for (unsigned i = 0; i < READERS_MAX; i++) {
    if (&readers[i] == own.place) continue;
    atomic_store(&readers[i].word, 0);
    atomic_store(&readers[i].taken, false);
  }
  bool here = own.depth > 0 && own.standing != PLACED;
  for (unsigned i = 0; i < 2; i++) atomic_store(&crowd[i], here && own.round == i ? 1 : 0);
}
