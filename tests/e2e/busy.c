/* SPDX-License-Identifier: Apache-2.0 */
/* A program with something to find: a thread that is busy in hot(), and waits in rest() in between. */
#include <pthread.h>
#include <time.h>

enum { ROUNDS = 10, COUNTS = 10000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile unsigned sum;

__attribute__((noinline)) static void hot(void) {
  for (unsigned i = 0; i < COUNTS; i++) sum += i;
}

__attribute__((noinline)) static void rest(void) {
  struct timespec until;

  clock_gettime(CLOCK_REALTIME, &until);
  pthread_mutex_lock(&lock);
  pthread_cond_timedwait(&never, &lock, &until);
  pthread_mutex_unlock(&lock);
}

static void *toil(void *arg) {
  for (int i = 0; i < ROUNDS; i++) {
    hot();
    rest();
  }
  return arg;
}

int main(void) {
  pthread_t thread;

  if (pthread_create(&thread, NULL, toil, NULL) != 0) return 1;
  return pthread_join(thread, NULL);
}
