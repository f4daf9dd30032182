/* SPDX-License-Identifier: Apache-2.0 */
/* A program that allocates on several threads at once, so that they wait for each other inside
 * the allocator. If the malloc() in use is strict_malloc.c's, the program prints that; it exits
 * with 1 and a line if something is wrong. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 400, HELD = 32 };

#define MUST(cond)                                                                                 \
  do {                                                                                             \
    if (cond) break;                                                                               \
    fprintf(stderr, "line %d: not %s: %s\n", __LINE__, #cond, strerror(errno));                    \
    exit(1);                                                                                       \
  } while (0)

static pthread_barrier_t begin;

static void *toil(void *arg) {
  void *held[HELD] = { 0 };

  pthread_barrier_wait(&begin);
  for (unsigned i = 0; i < ROUNDS; i++) {
    void **at = &held[i % HELD];
    free(*at);
    MUST((*at = i % 3 == 0 ? calloc(3, i + 1) : malloc(3 * (i + 1))) != NULL);
    memset(*at, 1, 3 * (i + 1));
    if (i % 5 == 0) MUST((*at = realloc(*at, 8000)) != NULL);
    if (i % 7 == 0) {
      free(*at);
      MUST(posix_memalign(at, 256, 300) == 0 && (size_t)*at % 256 == 0);
    }
  }
  for (unsigned i = 0; i < HELD; i++) free(held[i]);
  return arg;
}

/* Loads a second libc beside ours, in a namespace in which nothing is preloaded. */
static void use_another_namespace(void) {
  void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
  MUST(libc != NULL);
  void *(*take)(size_t) = (void *(*)(size_t))dlsym(libc, "malloc");
  void (*give)(void *) = (void (*)(void *))dlsym(libc, "free");
  MUST(take != NULL && give != NULL);
  give(take(100));
  dlclose(libc);
}

static void use_a_plugin(void) {
  void *library = dlopen("libz.so.1", RTLD_NOW);

  MUST(dlsym(RTLD_DEFAULT, "no_library_has_this_name") == NULL && dlerror() != NULL);
  if (library != NULL) dlclose(library);
}

int main(void) {
  pthread_t threads[THREADS];
  unsigned long *strict = dlsym(RTLD_DEFAULT, "strict_allocations");
  unsigned long before = strict != NULL ? __atomic_load_n(strict, __ATOMIC_RELAXED) : 0;

  use_a_plugin();
  use_another_namespace();
  pthread_barrier_init(&begin, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], NULL, toil, NULL) == 0);
  for (int i = 0; i < THREADS; i++) MUST(pthread_join(threads[i], NULL) == 0);
  if (strict != NULL)
    puts(__atomic_load_n(strict, __ATOMIC_RELAXED) - before >= THREADS * ROUNDS ? "strict"
                                                                                : "another");
  puts("as ever");
  return 0;
}
