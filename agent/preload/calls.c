/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers that calls.def describes. */
#include "agent/preload/preload.h"

static inline enum ta_tell poll_ms(int ms) {
  return ms == 0 ? TA_TELL_CALL : TA_TELL_POLL;
}

static inline enum ta_tell poll_timespec(const struct timespec *limit) {
  return limit != NULL && limit->tv_sec == 0 && limit->tv_nsec == 0 ? TA_TELL_CALL : TA_TELL_POLL;
}

static inline enum ta_tell poll_timeval(const struct timeval *limit) {
  return limit != NULL && limit->tv_sec == 0 && limit->tv_usec == 0 ? TA_TELL_CALL : TA_TELL_POLL;
}

/* Attempts. What must be a point of cancellation stays one. */

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

/* The wrappers. */

#define CALL(told_as, ret, name, params, args)                                                     \
  TA_API ret name params {                                                                         \
    enum ta_tell what = told_as;                                                                   \
    bool told = ta_tells(what) && ta_tell_begin(what, TA_FRAME);                                   \
    ret answer = TA_REAL(name) args;                                                               \
    if (told) ta_tell_end(TA_FRAME);                                                               \
    return answer;                                                                                 \
  }

#define LOCK(told_as, ret, name, params, args, attempt)                                            \
  TA_API ret name params {                                                                         \
    ret answer;                                                                                    \
    if (!ta_tells(told_as)) return TA_REAL(name) args;                                             \
    if (attempt) return answer;                                                                    \
    bool told = ta_tell_begin(told_as, TA_FRAME);                                                  \
    answer = TA_REAL(name) args;                                                                   \
    if (told) ta_tell_end(TA_FRAME);                                                               \
    return answer;                                                                                 \
  }

#define OWN(ret, name, params)
#define PLAIN(ret, name, params)
#include "agent/preload/calls.def"
