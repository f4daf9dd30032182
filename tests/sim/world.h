/* SPDX-License-Identifier: Apache-2.0 */
/* A machine that the store runs on: a disk, two clocks, random numbers, and threads of which one runs at a time.
 *
 * calls.c replaces functions of the C library: while there is a world (sim_world != NULL), they ask the world instead
 * of the kernel. The store is the real one, with the loops of its own threads: a thread runs until it waits, or until
 * it loses its turn at random in an I/O call. When all wait, the clocks jump to the first wake-up.
 *
 * Worlds nest: the boundary hook of a world, which is called before each change of its disk, can begin another world on
 * a disk after a power cut, and end it, as if the cut had happened at that moment.
 *
 * Threads   one.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <ucontext.h>

#include "sim/disk.h"

enum { SIM_FD_FIRST = 1 << 20, SIM_FDS = 128, SIM_THREADS = 8, SIM_MAPS = 16 };

#define SIM_STATE "/simulated"

/* The faults of a call; 0: none. */
enum sim_fault { SIM_NO_FAULT, SIM_EIO, SIM_ENOSPC, SIM_EINTR, SIM_SHORT };

struct sim_fd {
  enum { SIM_FREE, SIM_FILE, SIM_EVENT } kind;
  struct sim_file *file;
  uint64_t offset, event;
};

struct sim_thread {
  ucontext_t context;
  char *stack;
  void *(*run)(void *self);
  void *self;
  bool over, waits;
  int event_fd;      /* -1: waits for the clock only */
  uint64_t until_ns; /* mono */
};

struct sim_world {
  struct sim_world *outer; /* the world this one was begun in */
  struct sim_disk *disk;
  struct sim_chance chance; /* for thread switches and getrandom(2) */
  uint64_t mono_ns, wall_ns;
  unsigned quiet; /* > 0: no boundaries, no faults, no change of threads: the catalog's own I/O */
  void (*boundary)(void *self, const char *call);
  enum sim_fault (*fault)(void *self, const char *call); /* NULL: no faults */
  bool (*no_memory)(
      void *self,
      bool own);   /* at each allocation of the store's, its own or one of a library it calls;
                                              NULL: there is enough */
  unsigned inside; /* > 0: what its driver does is the store's doing, too */
  void *self;
  uint64_t boundaries;

  struct sim_fd fds[SIM_FDS];
  struct sim_thread *threads[SIM_THREADS];
  size_t nthreads;
  struct sim_thread *running; /* NULL: the caller of sim_turn() */
  ucontext_t home;
  const void *home_stack;
  size_t home_stack_bytes;
  struct sim_map {
    void *memory;
    size_t bytes, filled; /* zeroes after `filled` */
  } maps[SIM_MAPS];
};

extern struct sim_world *sim_world;

/* Takes the disk. The new world is sim_world until sim_end(). */
void sim_begin(struct sim_world *world, struct sim_disk *disk, uint64_t seed);
void sim_end(struct sim_world *world); /* frees the disk; all files must be closed */

/* Lets one thread run until it waits. Returns false if all wait; the clocks then moved to the next wake-up, but not
 * past `until_ns`. */
bool sim_turn(uint64_t until_ns);
/* Waits in the calling thread, or in the driver of all threads. */
void sim_wait(int event_fd, uint64_t until_ns);

/* ---- for calls.c */
struct sim_thread *sim_thread_new(void *(*run)(void *self), void *self);
void sim_thread_join(struct sim_thread *thread);
/* Called before a change of the disk. */
void sim_boundary(const char *call);

int sim_fd_new(struct sim_file *file); /* -1: EMFILE */
struct sim_fd *sim_fd_of(int fd);      /* NULL: not one of ours */

/* ---- vfs.c: SQLite's files on the world's disk */
void sim_vfs_register(void);
void sim_vfs_reset(void); /* SQLite's random numbers restart from the world's */

#endif
