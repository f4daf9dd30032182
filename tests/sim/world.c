/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/memory.h"

#ifdef TC_SANITIZED
#include <sanitizer/common_interface_defs.h>
#define LEAVE(fake, bottom, bytes)  __sanitizer_start_switch_fiber(fake, bottom, bytes)
#define ARRIVE(fake, bottom, bytes) __sanitizer_finish_switch_fiber(fake, bottom, bytes)
#else
#define LEAVE(fake, bottom, bytes)  ((void)(fake), (void)(bottom), (void)(bytes))
#define ARRIVE(fake, bottom, bytes) ((void)(fake), (void)(bottom), (void)(bytes))
#endif

enum { STACK_BYTES = 4 << 20, STACKS_KEPT = 64, TURN_ENDS_ONCE_IN = 4 };

struct sim_world *sim_world;

/* Stacks of ended threads, for reuse: a million threads are started. */
static char *stacks[STACKS_KEPT];
static size_t nstacks;

void sim_begin(struct sim_world *world, struct sim_disk *disk, uint64_t seed) {
  memset(world, 0, sizeof *world);
  world->outer = sim_world;
  world->disk = disk;
  world->chance.state = seed;
  world->mono_ns = UINT64_C(1000000000);
  world->wall_ns = UINT64_C(1790000000000000000);
  if (sim_world != NULL) {
    world->mono_ns = sim_world->mono_ns;
    world->wall_ns = sim_world->wall_ns;
  }
  sim_world = world;
  sim_vfs_reset();
}

void sim_end(struct sim_world *world) {
  sim_disk_free(world->disk);
  world->disk = NULL;
  sim_world = world->outer;
  sim_vfs_reset();
}

/* ---- threads */

static char *take_stack(void) {
  if (nstacks > 0) return stacks[--nstacks];
  char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) abort();
  return stack;
}

static void give_stack(char *stack) {
  if (nstacks < STACKS_KEPT)
    stacks[nstacks++] = stack;
  else
    munmap(stack, STACK_BYTES);
}

static void go_home(struct sim_world *world, struct sim_thread *thread) {
  void *fake = NULL;

  world->running = NULL;
  LEAVE(thread->over ? NULL : &fake, world->home_stack, world->home_stack_bytes);
  swapcontext(&thread->context, &world->home);
  ARRIVE(fake, &world->home_stack, &world->home_stack_bytes);
}

static void begin_thread(void) {
  struct sim_world *world = sim_world;
  struct sim_thread *thread = world->running;

  ARRIVE(NULL, &world->home_stack, &world->home_stack_bytes);
  thread->run(thread->self);
  thread->over = true;
  go_home(world, thread);
}

struct sim_thread *sim_thread_new(void *(*run)(void *self), void *self) {
  struct sim_world *world = sim_world;
  struct sim_thread *thread = sim_calloc(1, sizeof *thread);

  if (world->nthreads == SIM_THREADS) abort();
  thread->stack = take_stack();
  thread->run = run;
  thread->self = self;
  getcontext(&thread->context);
  thread->context.uc_stack.ss_sp = thread->stack;
  thread->context.uc_stack.ss_size = STACK_BYTES;
  makecontext(&thread->context, begin_thread, 0);
  world->threads[world->nthreads++] = thread;
  return thread;
}

static void run_thread(struct sim_world *world, struct sim_thread *thread) {
  void *fake = NULL;
  int why = errno;

  thread->waits = false;
  world->running = thread;
  LEAVE(&fake, thread->stack, STACK_BYTES);
  swapcontext(&world->home, &thread->context);
  ARRIVE(fake, NULL, NULL);
  errno = why;
}

static bool is_ready(const struct sim_world *world, const struct sim_thread *thread) {
  if (thread->over) return false;
  return !thread->waits || world->mono_ns >= thread->until_ns ||
         (thread->event_fd >= 0 && sim_fd_of(thread->event_fd)->event > 0);
}

bool sim_turn(uint64_t until_ns) {
  struct sim_world *world = sim_world;
  struct sim_thread *ready[SIM_THREADS];
  size_t n = 0;

  for (size_t i = 0; i < world->nthreads; i++)
    if (is_ready(world, world->threads[i])) ready[n++] = world->threads[i];
  if (n > 0) {
    world->mono_ns += 1000; /* each step takes time */
    world->wall_ns += 1000;
    run_thread(world, ready[sim_below(&world->chance, n)]);
    return true;
  }
  uint64_t next_ns = until_ns;
  for (size_t i = 0; i < world->nthreads; i++)
    if (!world->threads[i]->over && world->threads[i]->until_ns < next_ns)
      next_ns = world->threads[i]->until_ns;
  if (next_ns > world->mono_ns) {
    world->wall_ns += next_ns - world->mono_ns;
    world->mono_ns = next_ns;
  }
  return false;
}

void sim_wait(int event_fd, uint64_t until_ns) {
  struct sim_world *world = sim_world;
  struct sim_thread *thread = world->running;

  if (thread != NULL) {
    thread->waits = true;
    thread->event_fd = event_fd;
    thread->until_ns = until_ns;
    go_home(world, thread);
    return;
  }
  while (world->mono_ns < until_ns && (event_fd < 0 || sim_fd_of(event_fd)->event == 0))
    sim_turn(until_ns);
}

void sim_thread_join(struct sim_thread *thread) {
  struct sim_world *world = sim_world;
  size_t i = 0;

  while (!thread->over) sim_turn(UINT64_MAX);
  while (world->threads[i] != thread) i++;
  world->threads[i] = world->threads[--world->nthreads];
  give_stack(thread->stack);
  free(thread);
}

void sim_boundary(const char *call) {
  struct sim_world *world = sim_world;

  if (world->quiet > 0) return;
  if (world->running != NULL && sim_once_in(&world->chance, TURN_ENDS_ONCE_IN))
    sim_wait(-1, 0); /* another thread may run first */
  world->boundaries++;
  if (world->boundary != NULL) world->boundary(world->self, call);
}

/* ---- descriptors */

int sim_fd_new(struct sim_file *file) {
  for (int i = 0; i < SIM_FDS; i++) {
    if (sim_world->fds[i].kind != SIM_FREE) continue;
    sim_world->fds[i] =
        (struct sim_fd){ .kind = file != NULL ? SIM_FILE : SIM_EVENT, .file = file };
    return SIM_FD_FIRST + i;
  }
  errno = EMFILE;
  return -1;
}

struct sim_fd *sim_fd_of(int fd) {
  int i = fd - SIM_FD_FIRST;

  if (sim_world == NULL || i < 0 || i >= SIM_FDS || sim_world->fds[i].kind == SIM_FREE) return NULL;
  return &sim_world->fds[i];
}
