/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that ends the program if the same thread enters it again while inside of it.
 *
 * Real allocators take locks, read files, wait and wake while they hold their own lock. This one
 * does all of that, so that a thread's first event is often one of those. A library that allocates
 * to record such an event is found here; with a real allocator it would wait for itself.
 *
 * Built as a library to be preloaded, or into a program. Memory is never reused. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ALIGN = 16, HEAD = 16 };
#define ARENA_BYTES ((size_t)4 << 30)

extern _Atomic unsigned long strict_allocations;
_Atomic unsigned long strict_allocations;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem; /* zeroed, so its value is 0; used before a constructor could initialize it */
static unsigned char *arena;
static size_t used;
static __thread bool inside __attribute__((tls_model("initial-exec")));

static void enter(void) {
  static const char text[] = "the allocator was entered again from inside of it\n";

  if (inside) {
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) abort();
    abort();
  }
  inside = true;
  pthread_mutex_lock(&lock);
}

static void leave(void) {
  pthread_mutex_unlock(&lock);
  inside = false;
}

/* Does one of the things that allocators do internally, in turns. */
static void busy_itself(unsigned long turn) {
  struct timespec moment = { 0, 1000 };
  int before = errno;

  switch (turn % 64) {
  case 1: nanosleep(&moment, NULL); break;
  case 2: poll(NULL, 0, 1); break;
  case 3: pthread_cond_signal(&cond); break;
  case 4: pthread_cond_timedwait(&cond, &lock, &(struct timespec){ 1, 0 }); break;
  case 5: sem_post(&sem); break;
  case 6: sem_wait(&sem); break;
  case 7:
    if (read(-1, NULL, 0) == 0) abort();
    break;
  default: break;
  }
  errno = before;
}

static void *take(size_t alignment, size_t n) {
  enter();
  busy_itself(strict_allocations++);
  if (arena == NULL)
    arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) abort();
  if (alignment < ALIGN) alignment = ALIGN;
  size_t at = (used + HEAD + alignment - 1) / alignment * alignment;
  bool fits = n < ARENA_BYTES && at + n <= ARENA_BYTES;
  if (fits) {
    memcpy(arena + at - sizeof n, &n, sizeof n);
    used = at + n;
  }
  leave();
  if (!fits) errno = ENOMEM;
  return fits ? arena + at : NULL;
}

size_t malloc_usable_size(void *p) {
  size_t n = 0;

  if (p != NULL) memcpy(&n, (unsigned char *)p - sizeof n, sizeof n);
  return n;
}

void *malloc(size_t n) {
  return take(ALIGN, n);
}

void free(void *p) {
  if (p == NULL) return;
  enter();
  leave();
}

void *calloc(size_t n, size_t size) {
  return __builtin_mul_overflow(n, size, &n) ? NULL : take(ALIGN, n); /* fresh pages are zero */
}

void *realloc(void *p, size_t n) {
  size_t before = malloc_usable_size(p);
  void *moved = take(ALIGN, n);

  if (moved != NULL && p != NULL) memcpy(moved, p, n < before ? n : before);
  return moved;
}

void *memalign(size_t alignment, size_t n) {
  return take(alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n) {
  return take(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n) {
  *out = take(alignment, n);
  return *out != NULL ? 0 : ENOMEM;
}

/* A thread that exists before any session: its first event comes from inside the allocator. It
 * ends with the process. */
static void *allocate_on(void *arg) {
  for (;;) {
    free(malloc(100));
    usleep(1000);
  }
  return arg;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;

  if (pthread_create(&thread, NULL, allocate_on, NULL) == 0) pthread_detach(thread);
}
