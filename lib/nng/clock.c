/* SPDX-License-Identifier: Apache-2.0 */
#include "nng/clock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

typedef int (*clock_call)(clockid_t id, struct timespec *out);
typedef int (*attr_call)(pthread_condattr_t *attr);

static clock_call real_clock_gettime;
static attr_call real_condattr_init;
static struct dl_find_object nng; /* mapping of libnng; all zero: not found */

static void find_calls(void) {
  void *within = dlsym(RTLD_NEXT, "nng_version");

  *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  *(void **)&real_condattr_init = dlsym(RTLD_NEXT, "pthread_condattr_init");
  if (within != NULL && _dl_find_object(within, &nng) != 0) nng = (struct dl_find_object){ 0 };
}

void tc__clock_init(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, find_calls);
}

static bool is_nng(const void *caller) {
  return caller >= nng.dlfo_map_start && caller < nng.dlfo_map_end;
}

/* Both are weak: see accept.c. */
__attribute__((weak)) int clock_gettime(clockid_t id, struct timespec *out) {
  tc__clock_init();
  if (id == CLOCK_REALTIME && is_nng(__builtin_return_address(0))) id = CLOCK_MONOTONIC;
  return real_clock_gettime(id, out);
}

__attribute__((weak)) int pthread_condattr_init(pthread_condattr_t *attr) {
  tc__clock_init();
  int failed = real_condattr_init(attr);
  if (failed == 0 && is_nng(__builtin_return_address(0)))
    failed = pthread_condattr_setclock(attr, CLOCK_MONOTONIC);
  return failed;
}
