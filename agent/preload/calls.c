/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers that calls.def describes. */
#include <limits.h>
#include <string.h>

#include "agent/preload/preload.h"
#include "agent/preload/streams.h"

/* A poll of one descriptor waits for that peer, like read(); a poll of several is an event loop's. */
static inline enum ta_trace poll_of(nfds_t n) {
  return n == 1 ? TA_TRACE_POLL_ONE : TA_TRACE_POLL;
}

static inline enum ta_trace poll_ms(int ms, nfds_t n) {
  return ms == 0 ? TA_TRACE_CALL : poll_of(n);
}

static inline enum ta_trace poll_timespec(const struct timespec *limit, nfds_t n) {
  return limit != NULL && limit->tv_sec == 0 && limit->tv_nsec == 0 ? TA_TRACE_CALL : poll_of(n);
}

static inline enum ta_trace poll_timeval(const struct timeval *limit) {
  return limit != NULL && limit->tv_sec == 0 && limit->tv_usec == 0 ? TA_TRACE_CALL : TA_TRACE_POLL;
}

/* Attempts to get a lock without a wait. Cancellation points are preserved. */

static inline bool try_mutex(pthread_mutex_t *mutex, int *answer) {
  *answer = TA_REAL(pthread_mutex_trylock)(mutex);
  return *answer != EBUSY;
}

static inline bool try_mtx(mtx_t *mutex, int *answer) {
  *answer = TA_REAL(mtx_trylock)(mutex);
  return *answer != thrd_busy;
}

static inline bool try_read(pthread_rwlock_t *lock, int *answer) {
  *answer = TA_REAL(pthread_rwlock_tryrdlock)(lock);
  return *answer != EBUSY;
}

static inline bool try_write(pthread_rwlock_t *lock, int *answer) {
  *answer = TA_REAL(pthread_rwlock_trywrlock)(lock);
  return *answer != EBUSY;
}

static inline bool try_sem(sem_t *sem, int *answer) {
  int before = errno;

  pthread_testcancel();
  *answer = TA_REAL(sem_trywait)(sem);
  if (*answer == 0 || errno != EAGAIN) return true;
  errno = before;
  return false;
}

static inline bool try_join(pthread_t thread, void **out, int *answer) {
  pthread_testcancel();
  *answer = TA_REAL(pthread_tryjoin_np)(thread, out);
  return *answer != EBUSY;
}

static inline bool try_thrd_join(thrd_t thread, int *out, int *answer) {
  void *left;
  int error;

  pthread_testcancel();
  error = TA_REAL(pthread_tryjoin_np)(thread, &left);
  if (error == 0 && out != NULL) *out = (int)(intptr_t)left;
  *answer = error == 0 ? thrd_success : thrd_error;
  return error != EBUSY;
}

/* Return the system id of the thread that holds a lock, as libc stores it in the lock; 0: none, or readers. The lock exists,
 * because the caller is about to wait for it. The owner of a lock that processes share may be in another process. */
static inline int owner_of(const pthread_mutex_t *mutex) {
  return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
}

static inline int writer_of(const pthread_rwlock_t *lock) {
  return __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
}

/* Returns NULL if the mutex stays locked, because its owner has locked it more than once. */
static inline const pthread_mutex_t *free_after(const pthread_mutex_t *mutex) {
  bool nests = (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;

  return nests && mutex->__data.__count > 1 ? NULL : mutex;
}

#define CALL(traced_as, ret, name, params, args)                                                   \
  TA_API ret name params {                                                                         \
    enum ta_trace what = traced_as;                                                                \
    if (!ta_traces(what)) return TA_REAL(name) args;                                               \
    bool traced = ta_trace_begin(what, TA_CALL_##name, NULL, 0, TA_FRAME);                         \
    ret answer = TA_REAL(name) args;                                                               \
    if (traced) ta_trace_end(TA_FRAME);                                                            \
    return answer;                                                                                 \
  }

#define CALL_IF(ret, name, params, args, when)                                                     \
  TA_API ret name params {                                                                         \
    if (!ta_traces(TA_TRACE_CALL) || !(when)) return TA_REAL(name) args;                           \
    bool traced = ta_trace_begin(TA_TRACE_CALL, TA_CALL_##name, NULL, 0, TA_FRAME);                \
    ret answer = TA_REAL(name) args;                                                               \
    if (traced) ta_trace_end(TA_FRAME);                                                            \
    return answer;                                                                                 \
  }

#define COND(ret, name, params, args)                                                              \
  TA_API ret name params {                                                                         \
    if (!ta_traces(TA_TRACE_COND)) return TA_REAL(name) args;                                      \
    TA_TRACE_WAKE(name, mutex, TA_WAKE_ONE);                                                       \
    bool traced = ta_trace_begin(TA_TRACE_COND, TA_CALL_##name, cond, 0, TA_FRAME);                \
    ret answer = TA_REAL(name) args;                                                               \
    if (traced) ta_trace_end(TA_FRAME);                                                            \
    return answer;                                                                                 \
  }

#define LOCK(traced_as, ret, name, params, args, what, holder, attempt)                            \
  TA_API ret name params {                                                                         \
    ret answer;                                                                                    \
    if (!ta_traces(traced_as)) return TA_REAL(name) args;                                          \
    if (attempt) return answer;                                                                    \
    bool traced = ta_trace_begin(traced_as, TA_CALL_##name, what, holder, TA_FRAME);               \
    answer = TA_REAL(name) args;                                                                   \
    if (traced) ta_trace_end(TA_FRAME);                                                            \
    return answer;                                                                                 \
  }

#define WAKE(traced_as, ret, name, params, args, what, how)                                        \
  TA_API ret name params {                                                                         \
    if (ta_traces(traced_as)) TA_TRACE_WAKE(name, what, how);                                      \
    return TA_REAL(name) args;                                                                     \
  }

#define OWN(ret, name, params)
#define PLAIN(ret, name, params)
#include "agent/preload/calls.def"
