/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows nothing of tracing. When it ends it prints the heap objects that it holds, a
 * line `ADDRESS BYTES` each.
 *
 * Its threads allocate objects in every way there is and free each other's. It forks, and ends a
 * thread with objects that a destructor frees. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 512, THREADS = 4, ROUNDS = 1500 };

static _Atomic(void *) held[PLACES];
static pthread_key_t key;

#define MUST(cond)                                                                                 \
  do {                                                                                             \
    if (cond) break;                                                                               \
    fprintf(stderr, "line %d: not %s: %s\n", __LINE__, #cond, strerror(errno));                    \
    _exit(1);                                                                                      \
  } while (0)

static void *make(unsigned way, size_t n) {
  void *p = NULL;

  switch (way % 10) {
  case 0: return calloc(n, 3);
  case 1: return aligned_alloc(64, (n + 63) / 64 * 64);
  case 2: return memalign(256, n);
  case 3: MUST(posix_memalign(&p, 4096, n) == 0); return p;
  case 4: return realloc(NULL, n);
  case 5: return reallocarray(malloc(8), n, 2);
  case 6: return strdup("a text that libc copies");
  case 7: return valloc(n);
  case 8: return pvalloc(n);
  default: return malloc(n);
  }
}

static void *toil(void *arg) {
  unsigned seed = (unsigned)(uintptr_t)arg;
  pthread_attr_t attr;

  /* Allocates while holding the thread's own lock: if the library asks for the same lock then,
   * it waits for itself. */
  MUST(pthread_getattr_np(pthread_self(), &attr) == 0);
  pthread_attr_destroy(&attr);
  MUST(pthread_setspecific(key, malloc(77)) == 0);
  for (int i = 0; i < ROUNDS; i++) {
    unsigned dice = (unsigned)rand_r(&seed), place = dice % PLACES;
    void *p = atomic_exchange(&held[place], NULL);
    if (p != NULL && dice % 7 == 0) {
      MUST(realloc(p, SIZE_MAX / 2) == NULL && errno == ENOMEM);
      MUST((p = realloc(p, 1 + dice % 3000)) != NULL);
      p = atomic_exchange(&held[place], p);
    }
    free(p);
    MUST((p = make(dice / PLACES, 1 + dice % (i % 100 == 0 ? 300000 : 400))) != NULL);
    free(atomic_exchange(&held[place], p));
  }
  return arg;
}

static void fork_once(void) {
  int status;
  pid_t pid = fork();

  if (pid == 0) {
    free(atomic_exchange(&held[0], malloc(10)));
    _exit(7);
  }
  MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
}

/* Passes more time than the library keeps what a program does to itself. */
static void linger(void) {
  enum { LINGER_NS = 120000000 };
  struct timespec began, now;

  clock_gettime(CLOCK_MONOTONIC, &began);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - began.tv_sec) * 1000000000 + now.tv_nsec - began.tv_nsec < LINGER_NS);
}

int main(void) {
  pthread_t thread[THREADS];

  MUST(pthread_key_create(&key, free) == 0);
  for (uintptr_t i = 0; i < THREADS; i++)
    MUST(pthread_create(&thread[i], NULL, toil, (void *)(i + 1)) == 0);
  fork_once();
  for (int i = 0; i < THREADS; i++) MUST(pthread_join(thread[i], NULL) == 0);
  for (int i = 0; i < PLACES; i++)
    if (held[i] != NULL) printf("0x%lx %zu\n", (unsigned long)held[i], malloc_usable_size(held[i]));
  linger();
  return 0;
}
