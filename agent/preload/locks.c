/* SPDX-License-Identifier: Apache-2.0 */
/* Read-write locks and barriers. The wakeup must be written before the lock is released, and only libc knows which waiter will
 * continue: so libc's own fields are read. If they change before the call, the trace lacks a wakeup or wakes the wrong
 * waiter, but is never invalid.
 *
 * glibc since 2.25: a writer's unlock admits all waiting readers, or one writer if the lock prefers writers or no reader
 * waits. The last reader's unlock admits a writer. */
#include <string.h>

#include "agent/preload/preload.h"

#define LOOK(at) __atomic_load_n(&(at), __ATOMIC_RELAXED)

enum { READERS_SHIFT = 3 }; /* position of the count; three bits of state are below */

/* Returns the address for which the woken threads wait, or NULL if no thread continues. */
static inline const void *next_of(const pthread_rwlock_t *lock) {
  unsigned readers = LOOK(lock->__data.__readers) >> READERS_SHIFT; /* including those that wait */
  bool writes = LOOK(lock->__data.__cur_writer) != 0;
  bool prefers_writers = LOOK(lock->__data.__flags) != PTHREAD_RWLOCK_PREFER_READER_NP;

  if (!writes) return readers == 1 ? TA_WRITERS_OF(lock) : NULL;
  if (readers == 0 || (prefers_writers && LOOK(lock->__data.__writers) != 0))
    return TA_WRITERS_OF(lock);
  return lock;
}

TA_API int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
  if (ta_traces(TA_TRACE_MUTEX) &&
      TB_UNLIKELY(ta_is_waited_for(lock) || ta_is_waited_for(TA_WRITERS_OF(lock)))) {
    const void *next = next_of(lock);
    ta_trace_wake(TA_CALL_pthread_rwlock_unlock, next, next == lock ? TA_WAKE_ALL : TA_WAKE_ONE,
                  TA_FRAME);
  }
  return TA_REAL(pthread_rwlock_unlock)(lock);
}

/* Fields of a barrier, which libc does not name: threads that have arrived, how many of them in complete rounds, and threads
 * per round. */
struct counts {
  uint32_t come, complete, wanted;
} __attribute__((may_alias));
_Static_assert(sizeof(struct counts) <= sizeof(pthread_barrier_t), "the counts are in the barrier");

static atomic_bool counts_are_known;

void ta_locks_learn(void) {
  pthread_barrier_t one;
  const struct counts *c = (const void *)&one;

  memset(&one, 0xff, sizeof one);
  if (pthread_barrier_init(&one, NULL, 1) != 0) return;
  bool known = LOOK(c->come) == 0 && LOOK(c->complete) == 0 && LOOK(c->wanted) == 1;
  TA_REAL(pthread_barrier_wait)(&one);
  known = known && LOOK(c->come) == 1 && LOOK(c->complete) == 1 && LOOK(c->wanted) == 1;
  pthread_barrier_destroy(&one);
  atomic_store(&counts_are_known, known);
}

static inline bool comes_last(const pthread_barrier_t *barrier) {
  const struct counts *c = (const void *)barrier;

  return atomic_load_explicit(&counts_are_known, memory_order_relaxed) &&
         LOOK(c->come) - LOOK(c->complete) + 1 == LOOK(c->wanted);
}

/* The last thread to arrive does not wait. If more threads arrive than make a round, a thread may take itself for the last
 * and yet wait, because another was faster: its wait is not in the trace. */
TA_API int pthread_barrier_wait(pthread_barrier_t *barrier) {
  bool traced = false;

  if (ta_traces(TA_TRACE_MUTEX)) {
    if (comes_last(barrier))
      TA_TRACE_WAKE(pthread_barrier_wait, barrier, TA_WAKE_ALL);
    else
      traced = ta_trace_begin(TA_TRACE_MUTEX, TA_CALL_pthread_barrier_wait, barrier, 0, TA_FRAME);
  }
  int answer = TA_REAL(pthread_barrier_wait)(barrier);
  if (traced) ta_trace_end(TA_FRAME);
  return answer;
}
