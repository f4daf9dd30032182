/* SPDX-License-Identifier: Apache-2.0 */
/* Tracepoints: places in a program where probes can be attached.
 *
 * A comment in the source declares one; `tracectl tracepoints gen` makes a function of it:
 *
 *   #include "hello.trace.h"                        -- generated, from all sources of the module hello
 *   //trace:event traceHello(const char *who)
 *   ...
 *   traceHello(who);                                -- without probes: a load, a compare, a branch not taken
 *
 * A probe is called on the thread that passes the tracepoint, which continues when the probe has returned. One event
 * may have several probes; they are called in the order in which they were attached:
 *
 *   static void on_hello(void *self, const char *who) { ... }
 *   static struct ta_probe probe;                   -- yours, zeroed; in use until it is detached
 *
 *   ta_lock();
 *   traceHello_attach(NULL, &probe, on_hello, self);
 *   ta_unlock();
 *   ...
 *   ta_lock();
 *   ta_probe_detach(&probe);
 *   ta_unlock();                                    -- after this no thread runs on_hello()
 *
 * One lock for the whole process serves attaching and detaching; a thread that passes a tracepoint takes no lock and
 * waits for no other thread. ta_unlock() waits until every call of a probe that was detached under this lock has
 * returned. Within a probe it does not wait (the probe itself is running), so a probe may detach itself; its memory
 * may be reused once an unlock outside of all probes has returned.
 *
 * Events of another library: `//trace:import "hello"` makes hello_traceHello_attach() for hello's events. The import
 * is tied to the signature at the time of generation; if hello's signature has changed since, the program does not
 * link or does not load.
 *
 * Memory    the caller's, and 64 KiB for threads.
 * Threads   every call from any. A tracepoint may be passed in a signal handler if its thread has passed an
 *           attached one before. After fork() the child has the same probes attached.
 * Errors    0 or a code of enum ta_error; TA_E_MISUSE: the call is not valid in this state, nothing was done.
 */
#ifndef TRACEPROBE_H
#define TRACEPROBE_H

#include "traceagent.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ta_tracepoint; /* one event; its module knows it by name */
struct ta_call;
typedef void ta_probe_fn(void); /* cast from the event's own type: (void *self, its arguments) */

/* All fields belong to the library. */
struct ta_probe {
  struct ta_probe *next;
  ta_probe_fn *fn;
  void *self;
  struct ta_tracepoint *at; /* NULL: new, or detached and free again */
  struct ta_probe_group *group;
  struct ta_probe *next_of_group, *next_detached;
  void (*call)(void *self,
               const struct ta_call *call); /* for a probe that accepts any event, see below */
  void *call_self;
};

/* Zeroed: empty. */
struct ta_probe_group {
  struct ta_probe *first;
};

/* Required around every attach, add and detach. TA_E_MISUSE: this thread already holds (does not hold) the lock. */
TA_API int ta_lock(void);
TA_API int ta_unlock(void);

/* TA_E_MISUSE: not under the lock, or not attached. */
TA_API int ta_probe_detach(struct ta_probe *probe);

/* A group collects probes, to detach them all at once. add requires the lock, and a probe that is attached and in no
 * group; attach calls it if a group is passed. done requires that this thread does not hold the lock: it takes the lock
 * and waits as ta_unlock() does. */
TA_API int ta_probe_group_add(struct ta_probe_group *group, struct ta_probe *probe);
TA_API int ta_probe_group_done(struct ta_probe_group *group);

/* Returns the next probe of the same event, or NULL. Takes no lock and may be called at any time, also while probes are
 * attached and detached, for a probe that is attached, detached or new. Use the result only under the lock or within a
 * probe: elsewhere it may already be detached and freed. */
TA_API struct ta_probe *ta_probe_next(const struct ta_probe *probe);

/* Probes for any event: they receive its name and arguments. Texts and pointers are valid during the call only. */

enum ta_arg_kind { TA_ARG_INT, TA_ARG_UINT, TA_ARG_BOOL, TA_ARG_REAL, TA_ARG_TEXT, TA_ARG_POINTER };

struct ta_arg {
  enum ta_arg_kind kind;
  union {
    int64_t i;
    uint64_t u; /* for TA_ARG_BOOL, too */
    double real;
    const char *text; /* may be NULL */
    const void *pointer;
  } is;
};

struct ta_param {
  const char *type, *name;
};

struct ta_call {
  const char *module, *name;
  const struct ta_param *params;
  const struct ta_arg *args;
  unsigned n;
};

typedef void ta_call_fn(void *self, const struct ta_call *call);

/* group may be NULL. TA_E_MISUSE: not under the lock, or the probe is not new. */
TA_API int ta_call_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                          struct ta_probe *probe, ta_call_fn *fn, void *self);

/* Writes the call as text, `hello.traceHello(who="JP")`, cut to fit; returns its length. */
TA_API size_t ta_call_text(const struct ta_call *call, char *out, size_t bytes);

/* Records each call in the trace as a log event: the key is the event's name, hello.traceHello, the text its arguments,
 * who="JP" n=3. The stack begins with the line that signalled the event. Costs a branch while there is no session
 * (ta_emit_start). */
TA_API int ta_record_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                            struct ta_probe *probe);

/* Records each call as a typed event of an experiment, at a fraction of the cost (traceexperiment.h compares the two).
 * The experiment has the module's name, its event the tracepoint's name. gen writes its spec, hello.trace.spec, from
 * which `tracectl tracepoints experiment` makes typed readers. The event may also occur in a wait.
 * Up to four arguments are recorded: numbers, a text as who_string, a real number as the bits of a double under the
 * label price_real. If there are more, three are, and the rest as text in more_string. After up to three comes the stack.
 * TA_E_CONFIG: the names of event and module are longer than 48 bytes, or all numbers are used. */
TA_API int ta_record_event_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                                  struct ta_probe *probe);

/* Counts the stacks that lead to events, as a profile for go tool pprof: `go tool pprof -top PROGRAM FILE`. Each event
 * appears under its own name on top of its stacks. A call takes as long as libgcc needs to unwind the stack, with
 * glibc 2.35 and later without a lock.
 * Memory: 632 bytes for each of up to stacks_max stacks (0: 4096); further ones are counted as "(other stacks)". */
typedef struct ta_profile ta_profile;
TA_API int ta_profile_open(unsigned stacks_max, ta_profile **out);
TA_API int ta_profile_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                             struct ta_probe *probe, ta_profile *profile);
/* Gzipped; counting goes on meanwhile. */
TA_API int ta_profile_write(const ta_profile *profile, const char *path);
TA_API void ta_profile_close(ta_profile *profile); /* detaches its probes; may be NULL */

/* Writes events as JSON for ui.perfetto.dev and chrome://tracing; the events xBegin and xEnd become a span x. Threads
 * wait for each other at the file, so use this to study a program, not in production. A forked child writes nothing. */
typedef struct ta_chrome ta_chrome;
TA_API int ta_chrome_open(const char *path, ta_chrome **out);
TA_API int ta_chrome_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                            struct ta_probe *probe, ta_chrome *chrome);
/* Detaches its probes; may be NULL. TA_E_FILE: the file could not be written completely. */
TA_API int ta_chrome_close(ta_chrome *chrome);

/* For tests: threads are stopped at their events and continue in the order of a script.
 *
 *   ta_expect_open(0, &x);
 *   ta_lock(); ta_expect_attach(x, traceHello_point(), &probe); ta_unlock();
 *   ... threads begin ...
 *   ta_expect_pause(x, "worker", "hello.traceHello(who=\"JP\")");   -- the thread "worker" is stopped there
 *   ... check state that worker cannot change now ...
 *   ta_expect_event(x, "main", "hello.traceHello(who=\"Kirr\")");   -- worker continues, then expects main's event
 *   if (ta_expect_end(x) != TA_OK) puts(ta_expect_fault(x));         -- no other event occurred
 *   ta_expect_close(x);
 *
 * A thread is identified by its ta_expect_name() (at most 31 bytes), else by pthread_setname_np(). Once a step fails
 * every thread continues, later steps return TA_E_MISUSE, and the fault text contains the steps before, the expected
 * and the actual event, and where other threads are stopped. end() reports an event that no step expected if a thread
 * is stopped there by then.
 *
 * In a forked child no thread is stopped, and the script's calls return TA_E_MISUSE.
 *
 * Errors    TA_E_UNEXPECTED: another event. TA_E_TIMEOUT: no event within deadline_ms (0: 30 s). */
typedef struct ta_expect ta_expect;
TA_API int ta_expect_open(int64_t deadline_ms, ta_expect **out);
TA_API int ta_expect_attach(ta_expect *x, struct ta_tracepoint *at, struct ta_probe *probe);
TA_API void ta_expect_name(const char *thread);
TA_API int ta_expect_pause(ta_expect *x, const char *thread, const char *text);
TA_API void ta_expect_go(ta_expect *x); /* continues the paused thread, as the next step does */
TA_API int ta_expect_event(ta_expect *x, const char *thread, const char *text);
/* Lets every stopped thread continue. TA_E_MISUSE: a step failed before. */
TA_API int ta_expect_end(ta_expect *x);
TA_API const char *ta_expect_fault(const ta_expect *x); /* empty: none */
TA_API int ta_expect_close(ta_expect *x);               /* detaches its probes */

/* The rest is used by code that `tracectl tracepoints gen` writes. Each change increments TA_TRACE_ABI: code generated
 * for another version does not compile, and objects compiled with one neither link nor load. */
#define TA_TRACE_ABI 2
TA_API extern const char ta_trace_abi_2;

/* A module's events as the spec of an experiment. */
struct ta_trace_spec {
  const char *text;
  unsigned events;
};
#define TA_TRACE_NO_EVENT 0xffffffffu

struct ta_tracepoint {
  struct ta_probe *first; /* NULL: no probe is attached */
  const char *module, *name;
  const struct ta_param *params;
  unsigned n, event; /* of params; index in spec, TA_TRACE_NO_EVENT: none */
  ta_probe_fn *pack; /* a probe's fn that calls ta_call_run() */
  const struct ta_trace_spec *spec;
} __attribute__((aligned(64)));

/* Place where a thread passes a tracepoint: the address of the call, and the caller's frame. */
struct ta_passing {
  const void *pc, *frame;
  const struct ta_passing *outer; /* set if this tracepoint is passed within a probe of another */
};
#define TA_PASSING                                                                                 \
  { __builtin_return_address(0), *(void **)__builtin_frame_address(0), NULL }

#define TA_TRACE_PRIVATE __attribute__((visibility("hidden")))
#define TA_TRACE_SLOW    __attribute__((visibility("hidden"), cold, noinline))
/* For symbols without references that the linker must keep. */
#define TA_TRACE_KEPT __attribute__((used))
#ifdef __has_attribute
#if __has_attribute(retain)
#undef TA_TRACE_KEPT
#define TA_TRACE_KEPT __attribute__((used, retain))
#endif
#endif
#define TA_TRACE_IS_ON(at)                                                                         \
  __builtin_expect(__atomic_load_n(&(at)->first, __ATOMIC_RELAXED) != NULL, 0)

/* Placed after a call to prevent a tail call, which would remove the caller from its stacks. */
#define TA_TRACE_STAY __asm__ volatile("")

TA_API int ta_probe_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                           struct ta_probe *probe, ta_probe_fn *fn, void *self);
/* Between begin and end the event's probes stay valid. begin returns the first one. */
TA_API const struct ta_probe *ta_passing_begin(const struct ta_tracepoint *at,
                                               struct ta_passing *here);
TA_API void ta_passing_end(const struct ta_passing *here);
TA_API void ta_call_run(void *probe, const struct ta_arg *args);

/* An event's ELF note: module NUL name NUL (arguments) NUL signature NUL file:line NUL. */
#define TA_TRACE_NOTE_NAME "tracecollect"
enum { TA_TRACE_NOTE_TYPE = 0x7470 };
#define TA_TRACE_NOTE(id, text)                                                                    \
  __attribute__((section(".note.tracepoints"), used, aligned(4))) static const struct {            \
    uint32_t name_bytes, text_bytes, type;                                                         \
    char name[(sizeof TA_TRACE_NOTE_NAME + 3) & ~3u], is[(sizeof text + 3) & ~3u];                 \
  } id = { sizeof TA_TRACE_NOTE_NAME, sizeof text, TA_TRACE_NOTE_TYPE, TA_TRACE_NOTE_NAME, text }

#ifndef __cplusplus
static inline struct ta_arg ta_arg_int(long long value) {
  return (struct ta_arg){ .kind = TA_ARG_INT, .is.i = value };
}
static inline struct ta_arg ta_arg_uint(unsigned long long value) {
  return (struct ta_arg){ .kind = TA_ARG_UINT, .is.u = value };
}
static inline struct ta_arg ta_arg_bool(int value) {
  return (struct ta_arg){ .kind = TA_ARG_BOOL, .is.u = value != 0 };
}
static inline struct ta_arg ta_arg_real(double value) {
  return (struct ta_arg){ .kind = TA_ARG_REAL, .is.real = value };
}
static inline struct ta_arg ta_arg_text(const char *value) {
  return (struct ta_arg){ .kind = TA_ARG_TEXT, .is.text = value };
}
static inline struct ta_arg ta_arg_pointer(const void *value) {
  return (struct ta_arg){ .kind = TA_ARG_POINTER, .is.pointer = value };
}
#define TA_ARG(x)                                                                                  \
  _Generic((x),                                                                                    \
      _Bool: ta_arg_bool,                                                                          \
      char: ta_arg_int,                                                                            \
      signed char: ta_arg_int,                                                                     \
      short: ta_arg_int,                                                                           \
      int: ta_arg_int,                                                                             \
      long: ta_arg_int,                                                                            \
      long long: ta_arg_int,                                                                       \
      unsigned char: ta_arg_uint,                                                                  \
      unsigned short: ta_arg_uint,                                                                 \
      unsigned: ta_arg_uint,                                                                       \
      unsigned long: ta_arg_uint,                                                                  \
      unsigned long long: ta_arg_uint,                                                             \
      float: ta_arg_real,                                                                          \
      double: ta_arg_real,                                                                         \
      char *: ta_arg_text,                                                                         \
      const char *: ta_arg_text,                                                                   \
      default: ta_arg_pointer)(x)
#endif

#ifdef __cplusplus
}
#endif
#endif
