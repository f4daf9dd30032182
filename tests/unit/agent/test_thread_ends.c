/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a thread's end in a program whose first thread has ended. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "agent/host/process.h"

enum { THREADS = 100 };

static atomic_uint listed; /* folders */

DIR *opendir(const char *path) {
  DIR *(*next)(const char *);

  atomic_fetch_add(&listed, 1);
  *(void **)&next = dlsym(RTLD_NEXT, "opendir");
  return next(path);
}

static void *wait_at(void *barrier) {
  pthread_barrier_wait(barrier);
  return NULL;
}

static void *leave(void *out_is_last) {
  *(bool *)out_is_last = ta_process_leaves_none();
  return NULL;
}

Test(thread_ends, the_threads_are_not_listed_while_there_are_many) {
  pthread_t thread[THREADS], leaving;
  pthread_barrier_t barrier;
  bool is_last;

  cr_assert_eq(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
  for (int i = 0; i < THREADS; i++)
    cr_assert_eq(pthread_create(&thread[i], NULL, wait_at, &barrier), 0);
  unsigned before = atomic_load(&listed);
  for (int i = 0; i < THREADS; i++) {
    cr_assert_eq(pthread_create(&leaving, NULL, leave, &is_last), 0);
    cr_assert_eq(pthread_join(leaving, NULL), 0);
    cr_assert_not(is_last);
  }
  cr_assert_eq(atomic_load(&listed), before);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < THREADS; i++) cr_assert_eq(pthread_join(thread[i], NULL), 0);
  ta_process_be_last();
  cr_assert_gt(atomic_load(&listed), before, "that does");
}
