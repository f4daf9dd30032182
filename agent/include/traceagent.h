/* SPDX-License-Identifier: Apache-2.0 */
/* libtraceagent: sends a program's execution trace to a tracecollectd, live and over mutual TLS 1.3.
 *
 * Emit: a C or C++ program says what it does, and the trace is written here. See "Emit" below.
 *
 * Forward: bytes of a Go execution trace (format v2), as runtime/trace writes them, any chunking.
 *
 *   struct ta_forward_config cfg = { .server = "collector:7070", .certs = "/etc/myapp/trace",
 *                                    .service = "checkout" };
 *   ta_forward *f;
 *   if (ta_forward_open(&cfg, &f) == 0) {
 *     ta_forward_write(f, bytes, n);        -- from any thread; never blocks
 *     ta_forward_close(f, 2000);            -- waits at most 2 s for the acks
 *   }
 *
 * The law: nothing here blocks (except sync and close, up to their deadline), aborts, raises a signal,
 * changes errno or grows past its budget, whatever the collector, the network or the disk do. Data that
 * cannot be kept is dropped as whole generations, counted, and reported to the collector in a record.
 *
 * Memory    spool_bytes (16 MiB) for what is not acked yet, about 200 KiB beside it; with spool_dir 128 KiB more, and
 *           while a stream of an earlier program is sent, as much as that had in its spool.
 * Threads   every function may be called from any thread; one thread of our own per open stream (two while streams
 *           of earlier programs are sent, one more while the collector's name is looked up). They are never real-time,
 *           may use the processors of the process's first thread, and block all signals but those of a crash of their
 *           own. After fork() the agent is off in the child, and in any other child that has a process id of its own.
 * Unload    a plugin that holds libtraceagent.a stays loaded from its first stream, session or ta_lock() on, dlclose()
 *           or not: the ends of threads, fork(), exit() and signals come back to the agent's code.
 * Errors    0 or a negative code of enum ta_error; never errno. A pointer that must not be NULL and is: TA_E_MISUSE, or
 *           where a call has no answer, nothing is done.
 */
#ifndef TRACEAGENT_H
#define TRACEAGENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TA_API __attribute__((visibility("default")))

enum ta_error {
  TA_OK = 0,
  /* A field is missing or wrong, or a resource limit leaves no room for us: ta_strerror() says which. */
  TA_E_CONFIG = -1,
  TA_E_NOMEM = -2,
  TA_E_TIMEOUT = -3, /* the deadline passed; what is unsent stays (sync) or is given up (close) */
  TA_E_OFF = -4,     /* agent is off: TRACEAGENT_DISABLE=1, forked child, or a fault of our own */
  TA_E_REFUSED = -5, /* the collector refused for good, by name */
  TA_E_CERT = -6,    /* certificate or key unreadable or not matching */
  TA_E_CLOSED = -7,
  TA_E_THREAD = -8,  /* no thread could be started */
  TA_E_BUSY = -9,    /* a session of emitting is open already */
  TA_E_KEPT = -10,   /* as TA_E_TIMEOUT, but all of it is in spool_dir: it survives this program */
  TA_E_MISUSE = -11, /* a call that makes no sense where it stands; nothing was done */
  /* Of traceprobe.h. */
  TA_E_FILE = -12,       /* a file cannot be written */
  TA_E_UNEXPECTED = -13, /* another event came than was expected */
  TA_E_SYSTEM = -14, /* the system refuses a descriptor or random bytes: ta_strerror() says which */
};

typedef struct ta_forward ta_forward;

/* Strings are copied. Zero means the default. Environment: TRACEAGENT_DISABLE=1 turns everything off
 * (open answers TA_E_OFF); TRACEAGENT_SERVER, TRACEAGENT_CERTS, TRACEAGENT_SERVICE,
 * TRACEAGENT_INSTANCE and TRACEAGENT_SPOOL_DIR fill fields left NULL. TRACEAGENT_CRL names a file of
 * revocation lists (PEM), read again at each connection: a collector whose certificate is listed is refused. A
 * program that runs with raised rights (setuid) takes none of them from its caller. */
struct ta_forward_config {
  size_t size;                 /* sizeof this struct: no more of it is read. 0: as it is in 0.1.0 */
  const char *server;          /* HOST:PORT, or @FILE: a collector's --ready-file */
  const char *certs;           /* folder with ca.pem, agent.pem, agent.key */
  const char *ca, *cert, *key; /* or the three files by name */
  const char *service;         /* [A-Za-z0-9._:-]{1,64}, required */
  const char *instance;        /* default HOST:PID */
  uint64_t spool_bytes;        /* RAM for what is not acked yet; default 16 MiB, at least 1 MiB */
  uint64_t rate_bytes_s;       /* cap on what is sent a second; 0: none */
  /* Optional; called from our thread. level as in syslog(3). */
  void (*log)(void *self, int level, const char *text);
  void *log_self;
  /* Folder for what is not acked yet, so that it outlives this program; made if missing, else ours and
   * writable by no other user. See "Spool on disk" below. NULL: none. */
  const char *spool_dir;
  /* Half for this stream, half for those left there; default 4 * spool_bytes, at least 2 MiB. */
  uint64_t spool_dir_bytes;
  /* A flight recorder, see below: so much is kept and nothing sent until a snap is requested. 0: all is sent as it
   * goes. Environment: TRACEAGENT_RECORD_MS. Not together with spool_dir. */
  uint64_t record_ms;
};

/* Flight recorder. For programs too dense to stream always: the newest record_ms of the trace, as far as they fit
 * into spool_bytes, stay in memory as whole generations. Older generations are let go, which counts as
 * forgotten, not as lost. A snap sends what is kept, and what comes until the generation that is being written has
 * ended; then it goes on recording. Each snap is a whole trace: fetch writes it to a file of its own. Data that was
 * not sent by then stays in memory, whether the collector is there or not.
 *
 * A snap may be requested by: this program (ta_forward_snap, ta_emit_snap), from a signal handler, too; and any
 * reader of the collector (tracectl snap). close() sends nothing that was not requested: snap first. */

/* Spool on disk. Our thread copies what is in the spool into files as it comes, 100 ms later at most, and deletes what
 * is acked. Nothing goes out before it is there. When this program has died, by whatever, the next stream of the same
 * service that is opened with this spool_dir sends what is left of the old one: as that stream, with its names and
 * numbers, each record once, from a thread of its own; then the files go. A stream that was not finished ends
 * "unclean". The certificate must be of the same name, or the collector refuses the old stream and its files stay.
 *
 * Any number of processes may share the folder; what one of them works on is locked. Files outlive the program, not the
 * machine's power: they are not synced. They hold the trace: 0700, 0600.
 *
 * The spool in memory stays the whole spool, the files are its copy. On a disk that is full the files stay,
 * for the next process; what is not waits in memory, unsent, until there is room, or until all that is there is acked:
 * then the stream goes on without files, and writes new ones 10 s later. `disk_faults` counts. Older streams
 * that do not fit into half of spool_dir_bytes are deleted unsent when a stream is opened; log() hears of all this. */

enum ta_state {
  TA_STATE_CONNECTING = 1,
  TA_STATE_STREAMING = 2,
  TA_STATE_WAITING = 3, /* backing off before the next try */
  TA_STATE_REFUSED = 4,
  TA_STATE_CLOSED = 5,
  TA_STATE_OFF = 6,
};

struct ta_forward_status {
  size_t size; /* set by the caller to sizeof this struct */
  enum ta_state state;
  uint64_t produced_batches, produced_bytes; /* handed to write() */
  uint64_t acked_batches, acked_bytes, acked_generations;
  uint64_t lost_batches, lost_bytes, lost_generations;
  uint64_t spool_bytes, spool_bytes_peak;
  uint64_t connects, reconnects;
  uint64_t resent_batches;
  char stream[33]; /* hex id of the stream */
  /* Why acks do not come: the connection cannot be made, was refused or lost; or the collector holds it by a limit,
   * or has no room on its disk. Empty while they come. */
  char last_error[200];
  uint64_t faults; /* failed checks of our own; the first turned the stream off */
  /* How often the collector came back without records it had acked, its state wiped or restored from an
   * older copy. Each time the stream goes on under another id, what was acked counts as lost, and the next
   * whole generation is the first of the new one. log() hears of it at LOG_WARNING. */
  uint64_t begun_anew;
  uint64_t disk_bytes,
      disk_faults; /* of spool_dir: in this stream's files; how often it went off */
  uint64_t old_streams,
      old_streams_sent; /* left there by earlier programs: still to be sent (1 until that is known), sent */
  /* Of a recorder: whole generations that are kept now, with the one being written in bytes; those that were let go
   * unsent; requested snaps. Kept data is in none of the figures above before it is sent. */
  uint64_t recorded_generations, recorded_bytes, forgotten_generations, snaps;
  /* Why the newest of lost_generations was lost, with the setting to change where there is one; empty if none was.
   * log() hears of losses at LOG_WARNING, every 10 s at most. */
  char last_loss[120];
};

/* config NULL: as one that is zeroed. *out is NULL where the answer is not 0. */
TA_API int ta_forward_open(const struct ta_forward_config *config, ta_forward **out);

/* Takes n bytes of the trace, in order. write() and finish() on one stream must not overlap (the Go
 * runtime's do not). Copies and returns 0; bytes that cannot be kept are counted as lost, which is no
 * error here. TA_E_CLOSED, TA_E_OFF, TA_E_REFUSED: nothing was taken, nothing ever will be. */
TA_API int ta_forward_write(ta_forward *f, const void *bytes, size_t n);

/* Waits until everything written so far (whole generations; the open one up to its last batch) is acked.
 * deadline_ms < 0: for ever. 0: acked; TA_E_KEPT: not acked by then, but in spool_dir, all of it; TA_E_TIMEOUT,
 * TA_E_REFUSED, TA_E_OFF. After 0 and TA_E_KEPT this program may be killed, and nothing written before is lost. */
TA_API int ta_forward_sync(ta_forward *f, int64_t deadline_ms);

/* Of a recorder: sends the newest last_ms of what is kept, 0: all of it, and what comes until the generation that is
 * being written has ended. Waits for nothing: a sync() after it does. May be called from a signal handler.
 * TA_E_CONFIG: it does not record. TA_E_OFF. */
TA_API int ta_forward_snap(ta_forward *f, uint64_t last_ms);

/* Says that nothing more will come: the last generation is complete, a CLOSE record is on its way,
 * write() answers TA_E_CLOSED. Waits for nothing; a sync() after it waits for the whole stream. */
TA_API void ta_forward_finish(ta_forward *f);

/* Finishes, waits until all is acked or the deadline has passed, then frees f in any case. NULL is fine. */
TA_API int ta_forward_close(ta_forward *f, int64_t deadline_ms);

/* Every field up to out->size; TA_E_OFF in a forked child. */
TA_API int ta_forward_status(ta_forward *f, struct ta_forward_status *out);

/* Emit.
 *
 * The same for a program that is not written in Go: what its threads and fibers run, what they wait for, how
 * long they sit in the kernel, when the world stops. Every Go tool opens the trace.
 *
 *   static ta_name serve, key;                      -- texts that come again are named once
 *
 *   struct ta_forward_config where = { .server = "collector:7070", .certs = "/etc/myapp/trace", .service = "shop" };
 *   ta_emit_start(&where, NULL);
 *   serve = ta_name_of("serve"), key = ta_name_of("path");
 *   ...
 *   ta_region_begin(serve, 0);                      -- on any thread; the first event attaches it
 *   ta_log(0, key, "/basket");
 *   ta_wait_begin(TA_WAIT_MUTEX); pthread_mutex_lock(&m); ta_wait_end();
 *   ta_region_end();
 *   ...
 *   ta_emit_stop(2000);
 *
 * One session a process at a time. While there is none every call here costs a load and a compare and does nothing,
 * so that calls may stay in the program for good. In a session an event costs little more than reading the clock: it
 * goes into the thread's own batch, without lock, system call or memory shared with another thread.
 *
 * The law holds here, too: a call cannot fail, block or write a trace that Go's tools refuse. One that makes no sense
 * where it stands (a fiber that runs twice, the end of nothing, a NULL text, a number that was never given out) is left
 * out and counted in `misused`; only a debug build of the library (CMake's preset dev) aborts there, and says why. A
 * generation without memory is given up whole: counted, reported to the collector, and the next one is
 * complete again.
 *
 * Memory    spool_bytes of the stream: a quarter for batches, the rest for what is not acked. A thread that writes in a
 *           generation has one batch in it, or two at its end: 576 bytes where it writes little, up to 64 KiB where it
 *           writes much. 2,000 quiet threads fit the default, 10,000 fit 64 MiB. Beside it 400 bytes a thread and 400 a
 *           fiber, 600 KiB for names.
 * Threads   every call from any, up to 32,768 threads and 262,144 threads and fibers together; beyond that they are
 *           not traced, and `dropped` counts. Not from signal handlers. A thread that ends is detached. After fork()
 *           there is no session in the child; it may start its own. */

/* Headers that tracectl makes are inlined into their caller, with any compiler flags. */
#define TA_INLINE static inline __attribute__((always_inline))

typedef uint32_t ta_name;  /* of a text; 0: none */
typedef uint64_t ta_fiber; /* 0: none */
typedef uint64_t ta_task;  /* 0: none */

/* Zero means the default. */
struct ta_emit_config {
  size_t size;      /* sizeof this struct: no more of it is read. 0: as it is in 0.1.0 */
  unsigned version; /* of the trace's header, 22, 23, 25 or 26; default 26 */
  /* A generation is written for so long, 50 to 60000; default 1000. None ends in a pause. */
  unsigned generation_ms;
  uint64_t generation_bytes; /* or until it has so many, at least 65536; default 4 MiB */
  int monotonic_clock;       /* not 0: CLOCK_MONOTONIC, though the processor's counter be good */
  /* Stacks and samples, see below. */
  unsigned stack_depth; /* functions of an event's stack at most, to 128; 0: events have none */
  int stack_tables; /* not 0: by unwind tables, for what is compiled without frame pointers; slower */
  /* Of each thread, so many a second of its CPU time, to 1000; 100 is usual. 0: none. */
  unsigned samples_hz;
  int samples_signal; /* that a sample is taken by; default SIGURG */
  /* Not 0: what ta_memory_tell() reports, and threads' stacks (traceexperiment.h). */
  int allocfree;
};

/* Stacks. Events that have one in Go have one here if stack_depth is not 0: waits, calls, creations, wakeups,
 * begins and ends. It is read off the chain of frame pointers, so the program should be compiled with
 * -fno-omit-frame-pointer; where it is not, the caller of our function is there, and what lies above as far as there
 * is a chain, or all of it with stack_tables. That costs 30 to 60 ns an event of 10 functions, by tables 2 us.
 * Different stacks are kept once a generation, 8192 of them; beyond that an event has none, and `lost_stacks` counts.
 *
 * A thread of ours looks up functions, files and lines at a generation's end, if libdw.so.1 is there (Debian:
 * libdw1); what has no name, or not yet, is MODULE+0xOFFSET. Debug information is found by build id. Nothing is
 * fetched over the network.
 *
 * With stacks or samples a thread's first event asks libc where its stack lies, which allocates, but for the main
 * thread. Where events are emitted under a lock of the program's own allocator, call
 * ta_thread_attach() at the head of each thread.
 *
 * Samples. With samples_hz each attached thread is interrupted by a signal in every 1/samples_hz s of CPU that it uses,
 * and its stack goes into the trace as a CPU sample. It is the one thing here that the program can notice: see
 * agent/emit/generation/samples.h, and signal(7) on calls that are interrupted. A handler that was there for the
 * signal before goes on hearing of all others' signals. One that the program installs later gets our signals in the
 * place of ours: it should pass those whose si_code is SI_TIMER to the handler that it replaced. Ours stays when the
 * session has ended; where the program has put another in its place by then, a session with samples by that signal
 * is refused (TA_E_CONFIG), since the two might call each other for ever. Stacks are of frame pointers always, 32
 * deep or as stack_depth says.
 *
 * Memory    2.2 MiB for stacks, 1.8 MiB for names, 40 bytes a sample of a generation; what libdw takes while it looks.
 *           */

/* This struct and ta_forward_status grow at their ends only, and neither stands inside the other. A program that was
 * compiled with an older header sets a smaller size and gets the fields that it knows. */
struct ta_emit_status {
  size_t size;               /* set by the caller to sizeof this struct */
  uint64_t generations;      /* ended, those lost here among them */
  uint64_t lost_generations; /* no batch was free, or a pause had no end */
  uint64_t dropped;          /* events of those, and of threads and fibers beyond their number */
  uint64_t misused;          /* calls that made no sense where they stood */
  uint64_t threads;          /* attached */
  int cycle_clock;           /* not 0: the processor's counter is the clock */
  uint64_t lost_stacks;      /* of events that have none, because no memory was left */
  uint64_t samples, lost_samples; /* taken and in a generation; because no memory was left */
  uint64_t faults;                /* failed checks of our own, the stream's among them */
};

/* Opens the stream, as ta_forward_open(), and begins; how may be NULL. TA_E_BUSY: a session is open. */
TA_API int ta_emit_start(const struct ta_forward_config *where, const struct ta_emit_config *how);
/* Ends the generation at once, and waits until it and all before are acked; as ta_forward_sync(). TA_E_OFF: there is
 * no session. */
TA_API int ta_emit_sync(int64_t deadline_ms);
/* As ta_forward_snap(); the generation ends at once. A ta_emit_sync() after it waits until all of it is acked. */
TA_API int ta_emit_snap(uint64_t last_ms);
/* Ends the session, and waits until all is acked or the deadline has passed; a second more at most for our thread. A
 * ta_emit_sync() of another thread is answered then, whatever it waited for.
 * Threads may go on calling. TA_E_TIMEOUT, too, if a thread was stopped in the middle of writing an event: then the
 * session is still there, and stop may be called again. */
TA_API int ta_emit_stop(int64_t deadline_ms);
TA_API int ta_emit_status(struct ta_emit_status *out);
/* Of the session's stream, as ta_forward_status(). TA_E_OFF: there is no session. */
TA_API int ta_emit_forward_status(struct ta_forward_status *out);

/* The same text always has the same name, in all sessions and before the first. Up to 4096 names of 256 KiB together,
 * cut to 1024 bytes each; beyond that, and of NULL, 0, the empty text. Takes a lock: call it once a text, not once an
 * event. */
TA_API ta_name ta_name_of(const char *text);

/* Threads. The first event of a thread attaches it under the name that pthread_setname_np() gave it; attach() gives
 * another. On a thread that is attached the name is seen from the next generation on. Names that begin with
 * "runtime." are taken for Go's own. detach() is for threads that live on without us: what is open on it is closed. So is one
 * that forbids itself the processor's counter (PR_SET_TSC) or enters seccomp's strict mode: it emits nothing afterwards. */
TA_API void ta_thread_attach(ta_name name);
TA_API void ta_thread_detach(void);

/* Waits for something known; what runs on the thread is blocked for that reason. Inside a wait or a system call another
 * says nothing. A reason of one's own: any name. */
enum ta_wait_reason {
  TA_WAIT_MUTEX = 1, /* shown as "sync" */
  TA_WAIT_COND,      /* "sync.(*Cond).Wait" */
  TA_WAIT_JOIN,      /* "sync (join)" */
  TA_WAIT_SLEEP,     /* "sleep" */
  TA_WAIT_POLL,      /* "network": select, poll, epoll_wait */
};
TA_API void ta_wait_begin(ta_name reason);
TA_API void ta_wait_end(void);
/* The same for an object that others let go of: a lock, a queue, any address but NULL. Reports then count by object
 * (`tracectl report contention`). Whatever lets go of it calls release() right before: that ends the wait of the
 * thread that has waited longest, or of all, and says which thread held the object, and where it let go. A release that
 * no thread waits for costs a load. A thread that goes on without one ends its own wait, with ta_wait_end() as ever.
 *
 *   ta_wait_begin_for(TA_WAIT_MUTEX, &my_lock); my_lock_take(&my_lock); ta_wait_end();
 *   ta_wait_release(&my_lock, 0); my_lock_give(&my_lock); */
TA_API void ta_wait_begin_for(ta_name reason, const void *object);
TA_API void ta_wait_release(const void *object, int all);

/* A system call; one of more than 20 us is shown as having blocked. */
TA_API void ta_syscall_begin(void);
TA_API void ta_syscall_end(void);

/* Fibers: coroutines, requests, whatever runs on one thread at a time and no thread owns. While one runs, the thread
 * itself waits; everything else here (waits, regions, ...) then speaks of the fiber.
 *
 * create    ready to run, or waiting if waits is not 0 (from version 23 on).
 * switch    it runs on this thread from now on, and what ran waits; 0: the thread itself. One that waits is woken.
 * block     what runs waits for that reason, the thread itself goes on.
 * yield     what runs could go on, but has to let others run for that reason (its time is up): it is ready, and the
 *           thread itself goes on. A switch to it goes on with it.
 * stack     where its stack lies; without it the stacks of its events are the caller alone. Before it first runs.
 * self      what runs: a fiber, or the thread itself. Good for unblock() alone if it is a thread.
 * unblock   it is ready again, woken by the caller, any thread; also if it is in ta_wait_begin().
 * end       the fiber that runs ends; what regions it has open are closed. The thread itself goes on. */
TA_API ta_fiber ta_fiber_create(ta_name name, int waits);
TA_API ta_fiber ta_fiber_self(void);
TA_API void ta_fiber_stack(ta_fiber fiber, const void *low, size_t bytes);
TA_API void ta_fiber_switch(ta_fiber fiber);
TA_API void ta_fiber_block(ta_name reason);
TA_API void ta_fiber_yield(ta_name reason);
TA_API void ta_fiber_unblock(ta_fiber fiber);
TA_API void ta_fiber_end(void);

/* Regions: stretches of what runs, one inside the other; end() ends the innermost. 32 deep, more are not written. */
TA_API void ta_region_begin(ta_name name, ta_task task);
TA_API void ta_region_end(void);

/* Tasks: units of work that go from thread to thread. 0 while there is no session. */
TA_API ta_task ta_task_begin(ta_name type, ta_task parent);
TA_API void ta_task_end(ta_task task);

/* A line of text, at most 1024 bytes: for what happens seldom. */
TA_API void ta_log(ta_task task, ta_name key, const char *text);
/* Of what runs, until it stops running. */
TA_API void ta_label(ta_name label);

/* The whole program stands still, because of what runs on this thread. */
TA_API void ta_pause_begin(ta_name kind);
TA_API void ta_pause_end(void);

/* Garbage collection, of a program with a heap of its own. Each of these is called where something runs, and once: a
 * second begin, or an end without a begin, is left out and counted in `misused`. Operations that are open at
 * a generation's end are stated again at the head of the next one, so each generation can be read alone; of a
 * collection a goroutine called traceagent says it, which is there for that.
 *
 * gc      a collection, from its first mark to its last. Of the whole program: it may end on another thread than it
 *         began on.
 * sweep   freeing what was not marked. Of the thread, whatever runs on it: it ends on the thread it began on, and
 *         waits and system calls may lie in it. Bytes that were looked at, and those of them that are free now.
 * assist  what runs is made to mark, because it allocates faster than the collector marks. Of the fiber or thread that
 *         runs: it may be switched away from meanwhile.
 *
 * Operations that are still open when their thread or fiber ends are closed with it; a collection is not. */
TA_API void ta_gc_begin(void);
TA_API void ta_gc_end(void);
TA_API void ta_gc_sweep_begin(void);
TA_API void ta_gc_sweep_end(uint64_t swept_bytes, uint64_t reclaimed_bytes);
TA_API void ta_gc_assist_begin(void);
TA_API void ta_gc_assist_end(void);

/* Figures: how many threads may work at once (GOMAXPROCS); bytes in use, and at which more is done about it. */
TA_API void ta_workers(unsigned n);
TA_API void ta_heap_alloc(uint64_t bytes);
TA_API void ta_heap_goal(uint64_t bytes);

/* Words for an answer; for TA_E_CONFIG and TA_E_CERT of the last open on this thread, the very fault. */
TA_API const char *ta_strerror(int error);
TA_API const char *ta_version(void);

#ifdef __cplusplus
}
#endif
#endif
