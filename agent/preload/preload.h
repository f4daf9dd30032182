/* SPDX-License-Identifier: Apache-2.0 */
/* libtraceagent-preload.so: traces an unchanged C or C++ program.
 *
 *   LD_PRELOAD=/usr/lib/libtraceagent-preload.so \
 *   TRACEAGENT_SERVER=collector:7070 TRACEAGENT_CERTS=/etc/trace redis-server
 *
 * The library intercepts the program's calls of the functions in calls.def, traces them through the agent that it contains,
 * and calls libc's functions. The environment configures it; docs/OPERATIONS.md has the table. Without a server, or with a
 * wrong value, it writes one line to stderr and does nothing.
 *
 * The program may rely on this: results, errno, cancellation and the order of its own handlers are libc's. A wrapper traces
 * nothing
 *
 *   - while the agent's own code runs, on its threads and on the program's: `agent` below;
 *   - in a signal handler that interrupted a traced call: `frame` below;
 *   - in a forked child, unless TRACEAGENT_FORK=1: the children of most programs execute another program at once, or do one
 *     thing and end. A program that is executed begins its own session. After daemon() the child is traced;
 *   - in the child of vfork(): vfork() is not wrapped, and the child's calls count as calls of the thread that waits for it;
 *   - on a thread that has forbidden itself what tracing needs (bars.c);
 *   - in a program with a sanitizer, or one that TRACEAGENT_ONLY excludes: until that is known, only the real functions run.
 *
 * An unlock, a post, a signal, the last arrival at a barrier and the end of a thread write the wakeup of the waiter, if its
 * wait was traced (agent/emit/events/waiters.h). If another thread gets a mutex first, the longest waiter still counts as
 * woken. Creating a thread writes its goroutine (agent/emit/events/spawn.h).
 *
 * A handler may leave a call by longjmp(). Then the next call finds a frame that no longer exists, because its own is not
 * below it, and ends the old call first.
 *
 * Not traced are: calls that libc makes itself (the resolver's, those of printf() and of one character at a time), system
 * calls without libc, static programs.
 *
 * Stack     0.7 KiB in a call that is recorded, 1.8 KiB with stacks, 3.3 KiB by unwind tables; 4 KiB of a new thread's.
 * Memory    that of traceagent.h, 56 bytes per thread that is being created, 64 KiB for objects allocated before the session.
 * Threads   none before the stream begins (late.c); then the agent's two, one that looks names up if there are any, and one
 *           for a moment while the collector's address is looked up.
 */
#ifndef TA_PRELOAD_H
#define TA_PRELOAD_H

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "agent/emit/events/spawn.h"
#include "agent/emit/events/waiters.h"
#include "base/result.h"
#include "traceagent.h"

/* How a call is traced: as a system call, or as a wait, by enum ta_wait_reason. */
enum ta_trace {
  TA_TRACE_CALL,
  TA_TRACE_MUTEX = TA_WAIT_MUTEX,
  TA_TRACE_COND = TA_WAIT_COND,
  TA_TRACE_JOIN = TA_WAIT_JOIN,
  TA_TRACE_SLEEP = TA_WAIT_SLEEP,
  TA_TRACE_POLL = TA_WAIT_POLL,
  TA_TRACE_POLL_ONE = TA_WAIT_NETWORK,
  TA_TRACE_THREAD,  /* threads and their names */
  TA_TRACE_HEAP,    /* bytes in use */
  TA_TRACE_OBJECTS, /* each object that is allocated or freed */
  TA_TRACE_STACKS,  /* the bounds of threads' stacks are needed */
  TA_TRACE_EARLY,   /* no decision about a session yet: new objects are only stored (objects.c) */
  TA_TRACE_LATE,    /* the session's stream has not begun yet (late.c) */
};

/* Bit set of enum ta_trace; 0: no session. TA_TRACE_EARLY is set until our constructor has begun a session or found that there
 * will be none. */
extern _Atomic unsigned ta_traced;

/* State of this thread. A thread that may not do what tracing needs counts as the agent's, so that wrappers test one value. */
enum ta_bar {
  TA_BAR_COUNTER = 1u << 30, /* it must not read the processor's counter, the session's clock */
  TA_BAR_CALLS = 1u << 31,   /* it may only read, write and exit */
  TA_BARS = (unsigned)TA_BAR_COUNTER | (unsigned)TA_BAR_CALLS,
};
struct ta_here {
  unsigned agent;       /* nesting depth of the agent's code; and bars */
  bool forks;           /* handlers of fork() run, some of them the program's */
  unsigned inside;      /* nesting depth of allocator calls and pthread_create(), see late.c */
  enum ta_trace what;   /* kind of the call that is being traced */
  char *volatile frame; /* frame of that call's wrapper; NULL: no call is being traced */
};
extern __thread struct ta_here ta_here __attribute__((tls_model("initial-exec")));

static inline void ta_agent_begins(void) {
  ta_here.agent++;
  atomic_signal_fence(memory_order_seq_cst);
}
static inline void ta_agent_ends(void) {
  atomic_signal_fence(memory_order_seq_cst);
  ta_here.agent--;
}

/* As ta_agent_begins() and _ends(), if the caller may be an allocator that holds its locks: nothing is allocated in between. */
static inline void ta_hook_begins(void) {
  ta_agent_begins();
  ta_in_hook = true;
}
static inline void ta_hook_ends(void) {
  ta_in_hook = false;
  ta_agent_ends();
}

static inline bool ta_agent_runs(void) {
  return (ta_here.agent & ~(unsigned)TA_BARS) != 0;
}
/* Returns true if a thread or descriptor that is created now is the agent's. */
static inline bool ta_is_agents(void) {
  return ta_agent_runs() && !ta_here.forks;
}

static inline bool ta_traces_any(unsigned set) {
  return (atomic_load_explicit(&ta_traced, memory_order_relaxed) & set) != 0 && ta_here.agent == 0;
}
static inline bool ta_traces(enum ta_trace what) {
  return ta_traces_any(1u << what);
}

/* The calls. In a trace without stacks, a call's name is the stack of its events. */
enum ta_libc_call {
#define EACH(ret, name, params) TA_CALL_##name,
#include "agent/preload/each.h"
  TA_CALLS
};
void ta_trace_name_calls(void);

/* Returns false if nothing was written: then there is no ta_trace_end(). for_what: the object that others release, or NULL.
 * holder: system id of the thread that holds it; 0: not known. frame: the wrapper's. */
bool ta_trace_begin(enum ta_trace what, enum ta_libc_call call, const void *for_what, int holder,
                    char *frame);
void ta_trace_end(char *frame);
/* Call it before the release, so that the wakeup is written before the waiter can run. */
void ta_trace_wake(enum ta_libc_call call, const void *what, enum ta_wake how, char *frame);
#define TA_TRACE_WAKE(name, what, how)                                                             \
  do {                                                                                             \
    if (TB_UNLIKELY(ta_is_waited_for(what))) ta_trace_wake(TA_CALL_##name, what, how, TA_FRAME);   \
  } while (0)
/* Writes the goroutine of a thread that is about to be created. name: the function that it runs. */
struct ta_spawned ta_trace_thread_start(enum ta_libc_call call, ta_name name, char *frame);
#define TA_FRAME ((char *)__builtin_frame_address(0))

/* Addresses to wait for, if an object's own address is not enough: readers wait for a lock's own address. */
#define TA_OF_THREAD(thread) ((const void *)(uintptr_t)(thread))
#define TA_WRITERS_OF(lock)  ((const void *)((const char *)(lock) + 1))

/* Finds out whether libc's barriers have the known fields (locks.c). */
void ta_locks_learn(void);

/* The real functions. */

struct ta_real {
#define EACH(ret, name, params) ret(*name) params;
#include "agent/preload/each.h"
};
extern struct ta_real ta_real;
void ta_real_find(void);
void ta_versions_find(void); /* the older versions (versions.c) */
/* Finds the functions on first use: other libraries' constructors, and the allocator, run before our constructor. */
#define TA_REAL(name) (*TA_REAL_SLOT(name))
#define TA_REAL_SLOT(name)                                                                         \
  (({                                                                                              \
    if (TB_UNLIKELY(__atomic_load_n(&ta_real.name, __ATOMIC_ACQUIRE) == NULL)) ta_real_find();     \
    &ta_real.name;                                                                                 \
  }))

/* Functions that headers declare only for programs compiled with _FORTIFY_SOURCE. */
ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t n, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t n, off64_t at, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t n, size_t room, int flags, __SOCKADDR_ARG peer,
                       socklen_t *len);
size_t __fread_chk(void *to, size_t room, size_t size, size_t n, FILE *f);
char *__fgets_chk(char *to, size_t room, int n, FILE *f);
int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask,
                size_t room);

/* State around a system call by which a thread may forbid itself what tracing needs (bars.c). */
struct ta_bars {
  unsigned set; /* bars that the thread did not have before */
  bool clock;   /* the process uses the kernel's clock from now on */
  bool session; /* the session was ended */
  bool allows;  /* the call permits the thread again to read the time stamp counter */
};
struct ta_bars ta_bars_begin(long number, long a, long b);
void ta_bars_end(struct ta_bars bars, bool done);

/* The session (session.c), as the environment configures it. in_child: in a child of fork() or daemon(). */
void ta_preload_begin(bool in_child);
void ta_preload_end(void);
/* Returns true if this process has a session. */
bool ta_preload_is_on(void);
/* Ends the session before a call that no session survives; why, stored in the stream, may be NULL. stay: the call has failed,
 * and a session begins again. */
void ta_preload_leave(const char *why);
void ta_preload_stay(void);
/* Returns true if the session's clock is the processor's counter. */
bool ta_preload_counts(void);
bool ta_preload_follows_forks(void);
bool ta_preload_is_verbose(void);

/* Makes the first connection load OpenSSL (openssl.c). */
void ta_openssl_late(void);

/* The late begin of a stream (late.c). look() begins the stream if it is due and may begin here. */
void ta_late_open(uint64_t delay_ms);
void ta_late_look(void);
void ta_late_look_at_bytes(void);
bool ta_heap_is_behind(void);         /* our wrappers call the program's allocator (heap.c) */
bool ta_late_is_worth_a_stream(void); /* at the program's end: its stream is due */
bool ta_late_is_owner(void);          /* this process opened the session */
uint64_t ta_late_first_try_ns(void);

static inline bool ta_is_late(void) {
  return TB_UNLIKELY(
      (atomic_load_explicit(&ta_traced, memory_order_relaxed) & 1u << TA_TRACE_LATE) != 0);
}

/* Objects of the heap (objects.c). Call gone() before the object is freed. */
void ta_objects_made(void *p);
void ta_objects_gone(void *p);
/* Before the session keep() and forget() store the objects; trace_kept() writes those that still exist when it has begun. */
bool ta_objects_are_early(void);
void ta_objects_keep(void *p);
void ta_objects_forget(void *p);
void ta_objects_trace_kept(void);

/* Creates the keys whose destructors run at a thread's end (threads.c): ours before the agent's, so that the end can still be
 * written; and both before the program has created many. */
void ta_threads_watch(void);
void ta_threads_watch_this(void);

/* Gives one of the agent's threads descriptors of its own (descriptors.c). Until then the thread must open nothing: the
 * program may close that number and use it again. So the thread's creator reads what is needed, in prepare(). */
struct ta_parting {
  pid_t program; /* a thread that has the program's descriptors */
  bool by_close_range, by_unshare;
};
struct ta_parting ta_descriptors_prepare(void);
void ta_descriptors_part(struct ta_parting p, bool keep_stderr);
/* Hides a descriptor that was just made, if it is the agent's; returns it, perhaps under another number. */
int ta_descriptors_keep(int fd);

/* Runs work() on a stack of ours (stack.c): the caller's may be small. */
void ta_on_own_stack(void (*work)(void *self), void *self);
void ta_own_stack_find(void); /* call it before the first use */

/* Writes one line to stderr. */
void ta_preload_say(const char *fmt, ...) TB_PRINTF(1, 2);

#endif
