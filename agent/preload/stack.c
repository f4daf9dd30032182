/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of our own for work that needs more stack than a call may use: a program's threads may have 16 KiB, its coroutines and
 * signal handlers 4. The begin of a session needs more than that; a call that is recorded takes less than 1 KiB of it.
 *
 * valgrind takes a stack whose creation it has not seen for an error of the program: under valgrind the work runs on the
 * caller's stack. */
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#include "agent/host/keep.h"
#include "agent/preload/lookup.h"
#include "agent/preload/preload.h"

/* The guard is one page of the largest size, 64 KiB. Untouched pages cost nothing. */
enum { STACK_BYTES = 256 << 10, GUARD_BYTES = 64 << 10 };

/* Stored at the end of the mapping: a context alone has 1 KiB. */
struct own {
  ucontext_t here, there;
  sigset_t blocked, before;
  void (*work)(void *self);
  void *self;
};

static void run_work(unsigned high, unsigned low) {
  struct own *own = (struct own *)((uintptr_t)high << 32 | low);

  own->work(own->self);
}

/* Blocks signals. A handler of the program's that ran on this stack would be misled: the kernel uses the stack pointer to see
 * whether a thread is on the alternate stack, a garbage collector to see how far to scan. Signals that the thread itself
 * causes are not blocked. */
static void block(struct own *own) {
  static const int through[] = { SIGABRT, SIGBUS, SIGFPE,  SIGILL, SIGPIPE,
                                 SIGSEGV, SIGSYS, SIGTRAP, SIGXFSZ };

  sigfillset(&own->blocked);
  for (size_t i = 0; i < sizeof through / sizeof *through; i++)
    sigdelset(&own->blocked, through[i]);
  pthread_sigmask(SIG_BLOCK, &own->blocked, &own->before);
}

/* Signals are blocked before and after both switches: a switch sets the mask before it leaves the stack, so a pending signal
 * would be handled on that stack. */
static __attribute__((noinline)) bool switch_to(char *map, void (*work)(void *self), void *self) {
  struct own *own = (struct own *)(map + GUARD_BYTES + STACK_BYTES);

  if (mprotect(map, GUARD_BYTES, PROT_NONE) != 0) return false;
  block(own);
  bool done = getcontext(&own->there) == 0;
  if (done) {
    own->work = work;
    own->self = self;
    own->there.uc_stack = (stack_t){ .ss_sp = map + GUARD_BYTES, .ss_size = STACK_BYTES };
    own->there.uc_link = &own->here;
    makecontext(&own->there, (void (*)(void))run_work, 2, (unsigned)((uintptr_t)own >> 32),
                (unsigned)(uintptr_t)own);
    done = swapcontext(&own->here, &own->there) == 0;
  }
  pthread_sigmask(SIG_SETMASK, &own->before, NULL);
  return done;
}

#if defined __aarch64__
static const char valgrind[] = "vgpreload_core-arm64-linux.so";
#else
static const char valgrind[] = "vgpreload_core-amd64-linux.so";
#endif

static bool is_valgrind;

void ta_own_stack_find(void) {
  is_valgrind = ta_lookup_has_object(valgrind);
}

void ta_on_own_stack(void (*work)(void *self), void *self) {
  enum { BYTES = GUARD_BYTES + STACK_BYTES + sizeof(struct own) };
  KEEP_FROM_CANCEL; /* nothing can unwind from one stack to the other */
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void *map = is_valgrind ? MAP_FAILED : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);

  if (map == MAP_FAILED || !switch_to(map, work, self)) work(self);
  if (map != MAP_FAILED) munmap(map, BYTES);
}
