/* SPDX-License-Identifier: Apache-2.0 */
/* libtraceagent: sends a program's execution trace to a tracecollectd, live and over mutual TLS 1.3.
 *
 * Emit: for a C or C++ program. It reports what it does by calls, and the library writes the trace. See "Emit" below.
 *
 * Forward: for a Go execution trace (format v2) that exists already. Pass its bytes in chunks of any size.
 *
 *   struct ta_forward_config cfg = { .server = "collector:7070", .certs = "/etc/myapp/trace",
 *                                    .service = "checkout" };
 *   ta_forward *f;
 *   if (ta_forward_open(&cfg, &f) == 0) {
 *     ta_forward_write(f, bytes, n);        -- from any thread; never blocks
 *     ta_forward_close(f, 2000);            -- waits at most 2 s for the acks
 *   }
 *
 * Guarantee: no call blocks (except sync and close, up to their deadline), aborts, raises a signal, changes errno
 * or uses more memory than its budget, whatever the collector, the network or the disk do. Data that does not fit
 * is dropped as whole generations, counted, and reported to the collector in a record.
 *
 * Memory    spool_bytes (16 MiB) for unacked data, plus about 200 KiB; with spool_dir 128 KiB more. While a stream of
 *           an earlier program is sent, as much again as that program's spool held.
 * Threads   every function may be called from any thread. The library runs one thread per open stream (two while
 *           streams of earlier programs are sent, one more while the collector's name is looked up). These threads are
 *           never real-time, may use the processors of the process's first thread, and block all signals except those
 *           that report a crash of their own. After fork() the agent is off in the child, as in any other child process.
 * Unload    a plugin that contains libtraceagent.a stays loaded after its first stream, session or ta_lock(), even if
 *           dlclose() is called: thread exit, fork(), exit() and signals still call the agent's code.
 * Errors    0 or a negative code of enum ta_error; never errno. NULL where a pointer is required: TA_E_MISUSE; a call
 *           that returns nothing then does nothing.
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
  /* A field is missing or wrong, or a resource limit is too low for the agent: ta_strerror() names it. */
  TA_E_CONFIG = -1,
  TA_E_NOMEM = -2,
  TA_E_TIMEOUT = -3, /* the deadline passed; unsent data is kept (sync) or discarded (close) */
  TA_E_OFF = -4,     /* agent is off: TRACEAGENT_DISABLE=1, forked child, or an internal error */
  TA_E_REFUSED = -5, /* the collector refused this stream for good */
  TA_E_CERT = -6,    /* certificate or key unreadable or not matching */
  TA_E_CLOSED = -7,
  TA_E_THREAD = -8, /* no thread could be started */
  TA_E_BUSY = -9,   /* an emit session is open already */
  TA_E_KEPT =
      -10, /* as TA_E_TIMEOUT, but all unacked data is in spool_dir and outlives this program */
  TA_E_MISUSE = -11, /* the call is not valid in this state; nothing was done */
  /* Used by traceprobe.h. */
  TA_E_FILE = -12,       /* a file cannot be written */
  TA_E_UNEXPECTED = -13, /* an event differed from the expected one */
  TA_E_SYSTEM = -14, /* the system refuses a descriptor or random bytes: ta_strerror() says which */
};

typedef struct ta_forward ta_forward;

/* Strings are copied. Zero means the default. Environment: TRACEAGENT_DISABLE=1 turns everything off
 * (open returns TA_E_OFF); TRACEAGENT_SERVER, TRACEAGENT_CERTS, TRACEAGENT_SERVICE,
 * TRACEAGENT_INSTANCE and TRACEAGENT_SPOOL_DIR fill fields left NULL. TRACEAGENT_CRL names a file of
 * revocation lists (PEM), read again at each connection: a collector whose certificate is listed is refused.
 * A program that runs with raised rights (setuid) ignores all of them. */
struct ta_forward_config {
  size_t size;        /* sizeof this struct; 0: its size in 0.1.0. Fields beyond are not read */
  const char *server; /* HOST:PORT, or @FILE: a collector's --ready-file */
  const char *certs;  /* folder with ca.pem, agent.pem, agent.key, or ca.crt, tls.crt, tls.key */
  const char *ca, *cert, *key; /* or the three files by name */
  const char *service;         /* [A-Za-z0-9._:-]{1,64}, required */
  const char *instance;        /* default HOST:PID */
  uint64_t spool_bytes;        /* RAM for unacked data; default 16 MiB, at least 1 MiB */
  uint64_t rate_bytes_s;       /* cap on bytes sent per second; 0: none */
  /* Optional; called from the library's thread. level as in syslog(3). */
  void (*log)(void *self, int level, const char *text);
  void *log_self;
  /* Folder for unacked data that must outlive this program; NULL: none. Created if missing; an existing folder
   * must belong to this user and be writable by no other. See "Spool on disk" below. */
  const char *spool_dir;
  /* Half for this stream, half for streams of earlier programs; default 4 * spool_bytes, at least 2 MiB. */
  uint64_t spool_dir_bytes;
  /* Flight recorder, see below: keep the newest record_ms, send nothing until a snap is requested. 0: send
   * everything at once. Environment: TRACEAGENT_RECORD_MS. Cannot be combined with spool_dir. */
  uint64_t record_ms;
};

/* Flight recorder. For programs whose trace is too dense to stream all the time: the newest record_ms of the trace
 * stay in memory as whole generations, as far as they fit into spool_bytes. Older generations are discarded and
 * counted as forgotten, not as lost. A snap sends the recorded generations and the one being written, once that has
 * ended; then recording continues. Each snap is a whole trace: fetch writes it to a file of its own. Data outside a
 * snap stays in memory, connected or not.
 *
 * A snap may be requested by this program (ta_forward_snap, ta_emit_snap), also from a signal handler, and by any
 * reader of the collector (tracectl snap). close() sends only what was requested: snap first. */

/* Spool on disk. The library's thread copies the spool into files, at most 100 ms late, and deletes acked data from
 * them. Nothing is sent before it is in a file. If this program dies, the next stream of the same service that is
 * opened with this spool_dir sends the rest of the old stream from a thread of its own: under the old stream's id,
 * names and numbers, each record once; then the files are deleted. A stream that was not finished ends "unclean".
 * The certificate must have the same name, or the collector refuses the old stream and its files stay.
 *
 * Any number of processes may share the folder; each locks the streams it works on. The files survive the program but
 * not a power failure: they are not synced. They contain the trace, so their modes are 0700 and 0600.
 *
 * The spool in memory remains complete; the files are its copy. If the disk is full, existing files stay for the next
 * process, and data that could not be copied waits in memory, unsent, until there is room or until all data in the
 * files is acked. In the latter case the stream continues without files and starts new ones 10 s later; `disk_faults`
 * counts. Older streams that do not fit into half of spool_dir_bytes are deleted unsent when a stream is opened.
 * log() reports all of this. */

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
  /* Why no acks arrive: the connection failed, was refused or lost, or the collector delays it by a limit or has no
   * disk space. Empty while acks arrive. */
  char last_error[200];
  uint64_t faults; /* failed internal checks; the first one turned the stream off */
  /* How often the collector returned without records that it had acked (its state was wiped or restored from an older
   * copy). Each time the stream continues under a new id, starting with the next whole generation, and the acked
   * records count as lost. log() reports it at LOG_WARNING. */
  uint64_t begun_anew;
  uint64_t disk_bytes,
      disk_faults; /* spool_dir: bytes in this stream's files; how often it was switched off */
  uint64_t old_streams,
      old_streams_sent; /* streams of earlier programs: still to send (1 until that is known), sent */
  /* Recorder only: whole generations in memory; their bytes and those of the one being written; generations discarded
   * unsent; requested snaps. The figures above count recorded data only after it is sent. */
  uint64_t recorded_generations, recorded_bytes, forgotten_generations, snaps;
  /* Why the newest of lost_generations was lost, and the setting to change, if there is one; empty if none was lost.
   * log() reports losses at LOG_WARNING, at most every 10 s. */
  char last_loss[120];
};

/* Opens a stream. config NULL: as a zeroed one. *out is NULL unless 0 is returned. */
TA_API int ta_forward_open(const struct ta_forward_config *config, ta_forward **out);

/* Copies the next n bytes of the trace and returns 0, also if they do not fit and are counted as lost. write() and
 * finish() on one stream must not overlap (the Go runtime's do not). TA_E_CLOSED, TA_E_OFF, TA_E_REFUSED: nothing
 * was copied, and every later call fails, too. */
TA_API int ta_forward_write(ta_forward *f, const void *bytes, size_t n);

/* Waits until everything written so far (whole generations; the open one up to its last batch) is acked.
 * deadline_ms < 0: no deadline. Returns 0: acked; TA_E_KEPT: not acked by then, but all in spool_dir; TA_E_TIMEOUT,
 * TA_E_REFUSED, TA_E_OFF. After 0 and TA_E_KEPT this program may be killed without loss of data written before. */
TA_API int ta_forward_sync(ta_forward *f, int64_t deadline_ms);

/* Sends the newest last_ms of a recorder's trace (0: all of it), up to the end of the generation that is being
 * written. Returns at once; call sync() to wait. May be called from a signal handler.
 * TA_E_CONFIG: the stream is not a recorder. TA_E_OFF. */
TA_API int ta_forward_snap(ta_forward *f, uint64_t last_ms);

/* Ends the stream: completes the last generation and queues a CLOSE record; write() then returns TA_E_CLOSED.
 * Returns at once; a sync() after it waits for the whole stream. */
TA_API void ta_forward_finish(ta_forward *f);

/* Finishes, waits until all is acked or the deadline has passed, then frees f in any case. f may be NULL. */
TA_API int ta_forward_close(ta_forward *f, int64_t deadline_ms);

/* Fills every field up to out->size; TA_E_OFF in a forked child. */
TA_API int ta_forward_status(ta_forward *f, struct ta_forward_status *out);

/* Emit.
 *
 * For a program that is not written in Go: records what its threads and fibers run, what they wait for, how
 * long they are in the kernel, when the world stops. Every Go tool opens the trace.
 *
 *   static ta_name serve, key;                      -- name texts once that are used repeatedly
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
 * A process has at most one session at a time. Without one every call here costs a load and a compare and does
 * nothing, so the calls may stay in the program for good. In a session an event costs little more than reading the
 * clock: it is written into the thread's own batch, without a lock, a system call or memory shared between threads.
 *
 * The guarantee holds here, too: no call fails, blocks or writes a trace that Go's tools refuse. A misused call (a
 * fiber that already runs, an end without its begin, a NULL text, an unknown number) writes nothing and is counted in
 * `misused`; only a debug build of the library (CMake's preset dev) aborts and prints why. A generation for which
 * memory runs out is dropped as a whole, counted and reported to the collector; the next one is complete again.
 *
 * Memory    spool_bytes of the stream: a quarter for batches, the rest for unacked data. A thread that writes in a
 *           generation uses one batch, or two at its end: 576 bytes if it writes little, up to 64 KiB if it
 *           writes much. 2,000 quiet threads fit the default, 10,000 fit 64 MiB. In addition 400 bytes per thread, 400
 *           per fiber, 600 KiB for names.
 * Threads   every call may be made on any thread, but not in a signal handler. Up to 32,768 threads, and 262,144
 *           threads and fibers together; more are not traced and counted in `dropped`. A thread that ends is detached.
 *           After fork() the child has no session; it may start its own. */

/* Functions in headers that tracectl generates are inlined with any compiler flags. */
#define TA_INLINE static inline __attribute__((always_inline))

typedef uint32_t ta_name;  /* stands for a text; 0: none */
typedef uint64_t ta_fiber; /* 0: none */
typedef uint64_t ta_task;  /* 0: none */

/* Zero means the default. */
struct ta_emit_config {
  size_t size;      /* sizeof this struct; 0: its size in 0.1.0. Fields beyond are not read */
  unsigned version; /* the trace header's version: 22, 23, 25 or 26; default 26 */
  /* Length of a generation, 50 to 60000; default 1000. A generation never ends inside a pause. */
  unsigned generation_ms;
  uint64_t generation_bytes; /* size at which it ends earlier, at least 65536; default 4 MiB */
  int monotonic_clock; /* not 0: use CLOCK_MONOTONIC even if the processor's counter is usable */
  /* Stacks and samples, see below. */
  unsigned stack_depth; /* functions in an event's stack, up to 128; 0: events have no stacks */
  int stack_tables;     /* not 0: use unwind tables, for code without frame pointers; slower */
  /* CPU samples per second of each thread's CPU time, up to 1000; 100 is usual. 0: none. */
  unsigned samples_hz;
  int samples_signal; /* signal that takes the samples; default SIGURG */
  /* Not 0: record calls of ta_memory_tell() and the threads' stacks (traceexperiment.h). */
  int allocfree;
};

/* Stacks. If stack_depth is not 0, the events that have a stack in Go have one here: waits, calls, creations, wakeups,
 * begins and ends. The stack is read along the chain of frame pointers, so compile the program with
 * -fno-omit-frame-pointer; otherwise it shows the function that made the call and its callers as far as the chain
 * goes, or all of them with stack_tables. Cost for 10 functions: 30 to 60 ns an event, by tables 2 us. Each distinct
 * stack is stored once a generation, up to 8192; further events have none and are counted in `lost_stacks`.
 *
 * At a generation's end a thread of the library looks up functions, files and lines if libdw.so.1 is installed (Debian:
 * libdw1); an address without a name, or not looked up yet, is shown as MODULE+0xOFFSET. Debug information is found by
 * build id. Nothing is fetched over the network.
 *
 * With stacks or samples a thread's first event asks libc for the bounds of its stack, which allocates memory, except
 * on the main thread. If events are emitted under a lock of the program's own allocator, call
 * ta_thread_attach() at the start of each thread.
 *
 * Samples. With samples_hz a signal interrupts each attached thread once in every 1/samples_hz s of its CPU time, and
 * its stack is written to the trace as a CPU sample. This is the only effect that the program can notice: see
 * agent/emit/generation/samples.h, and signal(7) on interrupted calls. A handler that was installed for the signal
 * before still receives all other signals. A handler that the program installs later replaces the library's: it should
 * pass signals whose si_code is SI_TIMER to the handler that it replaced. The library's handler stays after the
 * session. If the program has replaced it by then, a new session with samples by that signal is refused
 * (TA_E_CONFIG), since the two handlers could call each other endlessly. Samples always use frame pointers, 32 deep or
 * stack_depth if set.
 *
 * Memory    2.2 MiB for stacks, 1.8 MiB for names, 40 bytes per sample in a generation; libdw's own during look-ups. */

/* This struct and ta_forward_status only grow at their ends, and neither contains the other. A program that was
 * compiled with an older header sets a smaller size and gets the fields that it knows. */
struct ta_emit_status {
  size_t size;               /* set by the caller to sizeof this struct */
  uint64_t generations;      /* ended, including lost ones */
  uint64_t lost_generations; /* no batch was free, or a pause did not end */
  uint64_t dropped;     /* events in lost generations and of threads and fibers beyond the limit */
  uint64_t misused;     /* calls that were not valid in their state */
  uint64_t threads;     /* attached */
  int cycle_clock;      /* not 0: the processor's counter is the clock */
  uint64_t lost_stacks; /* events without a stack because memory ran out */
  uint64_t samples, lost_samples; /* taken and in a generation; lost because memory ran out */
  uint64_t faults;                /* failed internal checks, including the stream's */
};

/* Opens the stream as ta_forward_open() does, and begins; how may be NULL. TA_E_BUSY: a session is open. */
TA_API int ta_emit_start(const struct ta_forward_config *where, const struct ta_emit_config *how);
/* Ends the generation at once and waits until all data is acked, as ta_forward_sync(). TA_E_OFF: no session. */
TA_API int ta_emit_sync(int64_t deadline_ms);
/* As ta_forward_snap(), but ends the generation at once. A ta_emit_sync() after it waits until all of it is acked. */
TA_API int ta_emit_snap(uint64_t last_ms);
/* Ends the session and waits until all is acked or the deadline has passed, plus at most a second for the library's
 * thread. A ta_emit_sync() that waits on another thread returns. Threads may continue to emit. Returns TA_E_TIMEOUT
 * also if a thread was stopped in the middle of writing an event: then the session is still open; call stop again. */
TA_API int ta_emit_stop(int64_t deadline_ms);
TA_API int ta_emit_status(struct ta_emit_status *out);
/* Status of the session's stream, as ta_forward_status(). TA_E_OFF: no session. */
TA_API int ta_emit_forward_status(struct ta_forward_status *out);

/* Returns the name of a text: the same one in all sessions, and before the first. Up to 4096 names, 256 KiB in total,
 * each cut to 1024 bytes. Returns 0, the empty text, for NULL and beyond those limits. Takes a lock: call it once per
 * text, not once per event. */
TA_API ta_name ta_name_of(const char *text);

/* Threads. A thread's first event attaches it under its pthread_setname_np() name; attach() sets another name. A thread
 * that is attached already shows the new name from the next generation on. Names that begin with "runtime." are taken
 * for Go's own. detach() is for a thread that lives on untraced; its open operations are closed. A thread that forbids
 * itself the processor's counter (PR_SET_TSC) or enters seccomp's strict mode is detached, too, and emits no more. */
TA_API void ta_thread_attach(ta_name name);
TA_API void ta_thread_detach(void);

/* A wait: the running fiber or thread is blocked for this reason. Inside a wait or a system call a second begin is
 * ignored. A reason is one of these or any name. */
enum ta_wait_reason {
  TA_WAIT_MUTEX = 1, /* in the trace "sync" */
  TA_WAIT_COND,      /* "sync (condition)" */
  TA_WAIT_JOIN,      /* "sync (join)": for a thread to end */
  TA_WAIT_SLEEP,     /* "sleep" */
  TA_WAIT_POLL, /* "network (poll)": an event loop in epoll_wait, poll or select; reports show it as idle */
  TA_WAIT_NETWORK, /* "network": for one descriptor */
};
TA_API void ta_wait_begin(ta_name reason);
TA_API void ta_wait_end(void);
/* A wait for an object that another thread releases: a lock, a queue, any address but NULL. Reports then count by
 * object (`tracectl report contention`). Call release() right before the object is released: it ends the wait of the
 * thread that has waited longest, or of all, and records which thread released the object, and where. A release
 * without waiters costs a load. A thread that continues without a release ends its own wait with ta_wait_end().
 *
 *   ta_wait_begin_for(TA_WAIT_MUTEX, &my_lock); my_lock_take(&my_lock); ta_wait_end();
 *   ta_wait_release(&my_lock, 0); my_lock_give(&my_lock); */
TA_API void ta_wait_begin_for(ta_name reason, const void *object);
TA_API void ta_wait_release(const void *object, int all);

/* A system call; one that takes more than 20 us is shown as blocked. */
TA_API void ta_syscall_begin(void);
TA_API void ta_syscall_end(void);

/* Fibers: coroutines, requests, anything that runs on one thread at a time but belongs to none. While a fiber runs, the
 * thread itself waits, and every other call here (waits, regions, ...) applies to the fiber.
 *
 * create    makes a fiber that is ready to run, or waiting if waits is not 0 (from version 23 on).
 * switch    runs the fiber on this thread, woken if it waited; the one that ran waits. 0: the thread itself runs.
 * block     makes the running fiber wait for this reason; the thread itself runs.
 * yield     makes the running fiber ready: it could continue, but must let others run for this reason (its time is
 *           up). The thread itself runs. A switch to the fiber continues it.
 * stack     sets the bounds of the fiber's stack; without it, its events' stacks are the caller alone. Call it before
 *           the fiber first runs.
 * self      returns the running fiber, or the thread itself, whose number is good for unblock() only.
 * unblock   makes the fiber ready, woken by the calling thread, which may be any; also if it is in ta_wait_begin().
 * end       ends the running fiber and closes its open regions. The thread itself runs. */
TA_API ta_fiber ta_fiber_create(ta_name name, int waits);
TA_API ta_fiber ta_fiber_self(void);
TA_API void ta_fiber_stack(ta_fiber fiber, const void *low, size_t bytes);
TA_API void ta_fiber_switch(ta_fiber fiber);
TA_API void ta_fiber_block(ta_name reason);
TA_API void ta_fiber_yield(ta_name reason);
TA_API void ta_fiber_unblock(ta_fiber fiber);
TA_API void ta_fiber_end(void);

/* Regions: nested sections of a fiber or thread; end() ends the innermost. At most 32 deep; deeper ones are ignored. */
TA_API void ta_region_begin(ta_name name, ta_task task);
TA_API void ta_region_end(void);

/* Tasks: units of work that several threads may take part in. begin returns 0 if there is no session. */
TA_API ta_task ta_task_begin(ta_name type, ta_task parent);
TA_API void ta_task_end(ta_task task);

/* A line of text, at most 1024 bytes: for rare events. */
TA_API void ta_log(ta_task task, ta_name key, const char *text);
/* Labels the running fiber or thread until it stops running. */
TA_API void ta_label(ta_name label);

/* A stop of the whole program, caused by the calling thread. */
TA_API void ta_pause_begin(ta_name kind);
TA_API void ta_pause_end(void);

/* Garbage collection of a program with its own heap. Call these outside of waits and system calls. A second begin, or
 * an end without a begin, is ignored and counted in `misused`. Operations that are open at a generation's end are
 * written again at the start of the next one, so each generation can be read alone; for a collection a goroutine
 * called traceagent does that, which exists for this purpose.
 *
 * gc      a collection, from its first mark to its last. Belongs to the whole program: it may end on another thread.
 * sweep   freeing unmarked memory. Belongs to the thread, whatever runs on it: it ends on the thread on which it began
 *         and may contain waits and system calls. end reports the bytes swept, and how many of them are now free.
 * assist  marking by a fiber or thread that allocates faster than the collector marks. Belongs to the running fiber or
 *         thread, which may be switched away from meanwhile.
 *
 * When a thread or fiber ends, its open operations are closed; a collection is not. */
TA_API void ta_gc_begin(void);
TA_API void ta_gc_end(void);
TA_API void ta_gc_sweep_begin(void);
TA_API void ta_gc_sweep_end(uint64_t swept_bytes, uint64_t reclaimed_bytes);
TA_API void ta_gc_assist_begin(void);
TA_API void ta_gc_assist_end(void);

/* Figures: threads that may work at once (GOMAXPROCS); heap bytes in use, and at which the next collection starts. */
TA_API void ta_workers(unsigned n);
TA_API void ta_heap_alloc(uint64_t bytes);
TA_API void ta_heap_goal(uint64_t bytes);

/* Text for a return value; after TA_E_CONFIG and TA_E_CERT, the fault that this thread's last open found. */
TA_API const char *ta_strerror(int error);
TA_API const char *ta_version(void);

#ifdef __cplusplus
}
#endif
#endif
