/* SPDX-License-Identifier: Apache-2.0 */
/* libtraceagent-preload.so: traces an unchanged C or C++ program.
 *
 *   LD_PRELOAD=/usr/lib/libtraceagent-preload.so \
 *   TRACEAGENT_SERVER=collector:7070 TRACEAGENT_CERTS=/etc/trace redis-server
 *
 * It stands between the program and libc for the calls of calls.def, traces them through the agent inside of
 * it, and calls the real ones. The environment says how; docs/OPERATIONS.md has the table. Without a server, or with
 * a wrong value, it says so once on stderr and does nothing.
 *
 * The program may rely on this: results, errno, cancellation and the order of its own handlers are libc's. A
 * wrapper traces nothing
 *
 *   - while the agent's own code runs, on its threads and on the program's: `agent` below;
 *   - in a signal handler that came in the middle of a traced call: `frame` below;
 *   - in a forked child, unless TRACEAGENT_FORK=1: the children of most programs run another one at once, or do one
 *     thing and end. A program that is run starts its own session. daemon() goes on with the child;
 *   - in the child of vfork(): no name is exported, and what it calls belongs to the thread that waits for it;
 *   - on a thread that has forbidden itself what tracing takes (bars.c);
 *   - in a program with a sanitizer, or that is not meant: nothing but the real functions is called before that is known.
 *
 * An unlock, a post, a signal, the last arrival at a barrier and the end of a thread write the wakeup of the
 * waiter, if it waited under our eyes (agent/emit/events/waiters.h). Of a mutex that another thread takes
 * first, the first in the line is woken. Creating a thread writes its goroutine (agent/emit/events/spawn.h).
 *
 * A handler may leave a call by longjmp(). Then the next call finds a frame that is no longer there, because its own
 * is not below it, and ends the old one first.
 *
 * Not seen are: calls that libc makes itself (the resolver's, those of printf() and of one character at a time),
 * system calls without libc, static programs.
 *
 * Stack     0.7 KiB in a call that is recorded, 1.8 KiB with stacks, 3.3 KiB by unwind tables; 4 KiB of a new thread's.
 * Memory    what traceagent.h says, 56 bytes a thread that is being created, 64 KiB of what was allocated before the
 *           session.
 * Threads   none before late.c begins the stream; then the agent's two, one that looks names up where there are any to look
 *           up, and one for a moment while the collector's address is looked up.
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
  TA_TRACE_THREAD,  /* that it is there, and its name */
  TA_TRACE_HEAP,    /* bytes in use */
  TA_TRACE_OBJECTS, /* what is allocated and freed */
  TA_TRACE_STACKS,  /* where threads' stacks lie is wanted */
  TA_TRACE_EARLY, /* nothing yet: what is allocated is kept in mind until a session begins, or none does */
  TA_TRACE_LATE, /* there is a session, and its stream is still to begin (late.c) */
};

/* Bit set of what is traced; 0: there is no session. TA_TRACE_EARLY from before our own constructor until the
 * session has begun, or it is known that there will be none. */
extern _Atomic unsigned ta_traced;

/* This thread. A thread that may not do what tracing takes counts as the agent's, so that a wrapper asks one thing only. */
enum ta_bar {
  TA_BAR_COUNTER =
      1u << 30,            /* it must not read the processor's counter, by which the session goes */
  TA_BAR_CALLS = 1u << 31, /* it may only read, write and exit */
  TA_BARS = (unsigned)TA_BAR_COUNTER | (unsigned)TA_BAR_CALLS,
};
struct ta_here {
  unsigned agent; /* the agent's code runs on it, so many times over; and bars */
  bool forks;     /* among it handlers of the program's */
  unsigned
      inside; /* an allocator, or where libc makes a thread: what interrupts it may do neither */
  enum ta_trace what;   /* of the call that is being traced */
  char *volatile frame; /* of its wrapper; NULL: none */
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

/* The same where the caller may be an allocator that holds its locks: nothing is allocated until it ends. */
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
/* A thread or descriptor that is made now is the agent's. */
static inline bool ta_is_agents(void) {
  return ta_agent_runs() && !ta_here.forks;
}

static inline bool ta_traces_any(unsigned set) {
  return (atomic_load_explicit(&ta_traced, memory_order_relaxed) & set) != 0 && ta_here.agent == 0;
}
static inline bool ta_traces(enum ta_trace what) {
  return ta_traces_any(1u << what);
}

/* The calls. Each has its name in the trace: where there are no stacks, it is the stack of its events. */
enum ta_libc_call {
#define EACH(ret, name, params) TA_CALL_##name,
#include "agent/preload/each.h"
  TA_CALLS
};
void ta_trace_name_calls(void);

/* Returns false if nothing was written: there is nothing to end. for_what: the object that others release, or NULL.
 * holder: the thread that has it; 0: not known. frame: the wrapper's. */
bool ta_trace_begin(enum ta_trace what, enum ta_libc_call call, const void *for_what, int holder,
                    char *frame);
void ta_trace_end(char *frame);
/* Comes before the release, so that the waiter's wakeup is written before it can run. */
void ta_trace_wake(enum ta_libc_call call, const void *what, enum ta_wake how, char *frame);
#define TA_TRACE_WAKE(name, what, how)                                                             \
  do {                                                                                             \
    if (TB_UNLIKELY(ta_is_waited_for(what))) ta_trace_wake(TA_CALL_##name, what, how, TA_FRAME);   \
  } while (0)
/* A thread that is about to be made, by the function that it runs. */
struct ta_spawned ta_trace_thread_start(enum ta_libc_call call, ta_name name, char *frame);
#define TA_FRAME ((char *)__builtin_frame_address(0))

/* The address waited for: the address of a lock, where that alone does not say it. */
#define TA_OF_THREAD(thread) ((const void *)(uintptr_t)(thread))
#define TA_WRITERS_OF(lock)  ((const void *)((const char *)(lock) + 1)) /* readers wait for it */

/* Whether libc's words of a barrier are those we know (locks.c). */
void ta_locks_learn(void);

/* The real functions. */

struct ta_real {
#define EACH(ret, name, params) ret(*name) params;
#include "agent/preload/each.h"
};
extern struct ta_real ta_real;
void ta_real_find(void);
void ta_versions_find(void); /* those that stand for older ones (versions.c) */
/* Constructors of other libraries come before ours, and so do the allocator's first steps. */
#define TA_REAL(name) (*TA_REAL_SLOT(name))
#define TA_REAL_SLOT(name)                                                                         \
  (({                                                                                              \
    if (TB_UNLIKELY(__atomic_load_n(&ta_real.name, __ATOMIC_ACQUIRE) == NULL)) ta_real_find();     \
    &ta_real.name;                                                                                 \
  }))

/* Names that stand in no header unless the program was compiled to check itself. */
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

/* Around a system call by which a thread may forbid itself what tracing takes (bars.c). */
struct ta_bars {
  unsigned set; /* bars that the thread did not have before */
  bool clock;   /* the process goes by the kernel's clock from now on */
  bool session, allows;
};
struct ta_bars ta_bars_begin(long number, long a, long b);
void ta_bars_end(struct ta_bars bars, bool done);

/* The session (session.c): begins with what the environment says, ends, is over in a forked child. */
void ta_preload_begin(bool in_child);
void ta_preload_end(void);
/* There is a session, and it is this process's. */
bool ta_preload_is_on(void);
/* The program is about to do what no session outlasts: its session ends, and the stream says why. Stay: that has failed,
 * and a session starts again. */
void ta_preload_leave(const char *why);
void ta_preload_stay(void);
/* The session goes by the processor's counter. */
bool ta_preload_counts(void);
bool ta_preload_follows_forks(void);
bool ta_preload_is_verbose(void);

/* OpenSSL is loaded when it is first called (openssl.c). */
void ta_openssl_late(void);

/* Late (late.c). look() begins the stream if it is time, and this is a place where it may. */
void ta_late_open(uint64_t delay_ms);
void ta_late_look(void);
void ta_late_look_at_bytes(void);
bool ta_heap_is_behind(void); /* the program's allocator is called by our wrappers (heap.c) */
bool ta_late_is_worth_a_stream(void); /* at the program's end */
bool ta_late_is_owner(void);          /* this is the process whose session it is */
uint64_t ta_late_first_try_ns(void);

static inline bool ta_is_late(void) {
  return TB_UNLIKELY(
      (atomic_load_explicit(&ta_traced, memory_order_relaxed) & 1u << TA_TRACE_LATE) != 0);
}

/* Objects of the heap (objects.c): one that was made, one that is about to go. */
void ta_objects_made(void *p);
void ta_objects_gone(void *p);
/* The same before there is a session, if that is wanted; and when it has begun, all that is still there. */
bool ta_objects_are_early(void);
void ta_objects_keep(void *p);
void ta_objects_forget(void *p);
void ta_objects_trace_kept(void);

/* Makes the keys whose destructors see a thread end (threads.c): ours before the agent's, so that a thread that ends
 * can still say so; and both before the program has many. */
void ta_threads_watch(void);
void ta_threads_watch_this(void);

/* One of the agent's threads gets descriptors of its own (descriptors.c). It must not open anything before: the
 * program may close that number meanwhile, and take it. So the thread that makes it prepares what is to be read for
 * it. */
struct ta_parting {
  pid_t program; /* a thread that has the program's descriptors */
  bool by_close_range, by_unshare;
};
struct ta_parting ta_descriptors_prepare(void);
void ta_descriptors_part(struct ta_parting p, bool keep_stderr);
/* One that was just made; if it is the agent's, the program will not meet it. */
int ta_descriptors_keep(int fd);

/* Runs that on a stack of ours (stack.c): whoever calls us may have a small one. */
void ta_on_own_stack(void (*work)(void *self), void *self);
void ta_own_stack_find(void); /* before the first use */

/* Says one line on stderr. */
void ta_preload_say(const char *fmt, ...) TB_PRINTF(1, 2);

#endif
