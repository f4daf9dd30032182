/* SPDX-License-Identifier: Apache-2.0 */
/* Tracepoints: places in a program where probes may look on.
 *
 * Declared by a comment in the source, made a function by `tracectl tracepoints gen`:
 *
 *   #include "hello.trace.h"                        -- generated, from all sources of the module hello
 *   //trace:event traceHello(const char *who)
 *   ...
 *   traceHello(who);                                -- does nothing: a load, a compare, a branch not taken
 *
 * A probe is called on the thread that comes by, which goes on when the probe has returned. One event may have several,
 * called in the order in which they were attached:
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
 *   ta_unlock();                                    -- from here on on_hello() is not running, on no thread
 *
 * The lock is one for the process, and for those who attach and detach; a thread that passes a tracepoint
 * takes no lock and waits for no other thread. ta_unlock() does the waiting: until every call of a probe that was
 * detached under this lock has returned. Within a probe it waits for nothing (the probe itself is running), so that
 * a probe may detach itself; its memory is free once an unlock outside of all probes has returned.
 *
 * Events of another library: `//trace:import "hello"` makes hello_traceHello_attach() of hello's events. It is tied to
 * the signature that was seen when it was generated; if hello has another one now, the program does not link or does
 * not load.
 *
 * Memory    none but the caller's; 64 KiB for threads.
 * Threads   every call from any. A call that passes a tracepoint may be in a signal handler, if its thread has passed
 *           an attached one before. After fork() the child has the same probes attached.
 * Errors    0 or a code of enum ta_error; TA_E_MISUSE: the call makes no sense here, nothing was done.
 */
#ifndef TRACEPROBE_H
#define TRACEPROBE_H

#include "traceagent.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ta_tracepoint; /* one event; its module knows it by name */
struct ta_call;
typedef void ta_probe_fn(void); /* of the event's own type: (void *self, its arguments) */

/* Fields are the library's. */
struct ta_probe {
  struct ta_probe *next;
  ta_probe_fn *fn;
  void *self;
  struct ta_tracepoint *at; /* NULL: new, or detached and free again */
  struct ta_probe_group *group;
  struct ta_probe *next_of_group, *next_detached;
  void (*call)(void *self,
               const struct ta_call *call); /* of a probe that looks at any event, see below */
  void *call_self;
};

/* Zeroed: empty. */
struct ta_probe_group {
  struct ta_probe *first;
};

/* Around every attach, add and detach. TA_E_MISUSE: this thread holds it, does not hold it. */
TA_API int ta_lock(void);
TA_API int ta_unlock(void);

/* TA_E_MISUSE: not under the lock, or not attached. */
TA_API int ta_probe_detach(struct ta_probe *probe);

/* A group collects probes, to detach them all at once. add wants the lock, and a probe that is attached and in no
 * group; attach does it when handed a group. done wants that this thread does not hold the lock: it takes it, and has
 * waited as ta_unlock() does. */
TA_API int ta_probe_group_add(struct ta_probe_group *group, struct ta_probe *probe);
TA_API int ta_probe_group_done(struct ta_probe_group *group);

/* The probe behind this one at the same event, NULL: none. It takes no lock and may be called at any time,
 * also while probes attach and detach, for a probe that is attached, detached or new. Its answer may be read
 * under the lock or within a probe: elsewhere it may be detached by then, and gone. */
TA_API struct ta_probe *ta_probe_next(const struct ta_probe *probe);

/* Probes that look at any event: they get its name and its arguments. Texts and pointers are lent for the call. */

enum ta_arg_kind { TA_ARG_INT, TA_ARG_UINT, TA_ARG_BOOL, TA_ARG_REAL, TA_ARG_TEXT, TA_ARG_POINTER };

struct ta_arg {
  enum ta_arg_kind kind;
  union {
    int64_t i;
    uint64_t u; /* also of TA_ARG_BOOL */
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

/* The call as text, `hello.traceHello(who="JP")`, cut to fit; answers its length. */
TA_API size_t ta_call_text(const struct ta_call *call, char *out, size_t bytes);

/* Records each call in the trace, as a log of what runs on the thread: the key is the event's name, hello.traceHello,
 * the text its arguments, who="JP" n=3. Its stack begins with the line that signalled the event. Costs a branch while
 * there is no session (ta_emit_start). */
TA_API int ta_record_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                            struct ta_probe *probe);

/* The same as an event of its own kind, typed, at a fraction of the cost (traceexperiment.h says when to prefer which):
 * the experiment has the module's name, its event the tracepoint's, and hello.trace.spec, which gen writes, says what
 * is in it; of that `tracectl tracepoints experiment` makes typed readers. It needs a thread alone, so it may stand in
 * a wait, too. Up to four arguments: numbers, a text as who_string, a real number as the bits of a double under the
 * label price_real. Of more, three, and the rest as text in more_string. Of up to three, the stack behind them.
 * TA_E_CONFIG: the names of event and module are longer than 48 bytes, or no number is left for them. */
TA_API int ta_record_event_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                                  struct ta_probe *probe);

/* Counts the stacks that lead to events, as a profile for go tool pprof: `go tool pprof -top PROGRAM FILE`. Each event
 * stands under its own name on top of its stacks. A call takes as long as libgcc needs to unwind the stack, with
 * glibc 2.35 and later without a lock.
 * Memory: 632 bytes a stack, of which there may be stacks_max (0: 4096); what comes beyond is counted as "(other
 * stacks)". */
typedef struct ta_profile ta_profile;
TA_API int ta_profile_open(unsigned stacks_max, ta_profile **out);
TA_API int ta_profile_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                             struct ta_probe *probe, ta_profile *profile);
/* Gzipped; counting goes on meanwhile. */
TA_API int ta_profile_write(const ta_profile *profile, const char *path);
TA_API void ta_profile_close(ta_profile *profile); /* its probes are detached; NULL is fine */

/* Writes events as JSON for ui.perfetto.dev and chrome://tracing; the events xBegin and xEnd become a span x. Threads
 * take turns at the file, so this is for looking at a program, not for one that must not wait. A forked child writes
 * nothing into it. */
typedef struct ta_chrome ta_chrome;
TA_API int ta_chrome_open(const char *path, ta_chrome **out);
TA_API int ta_chrome_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                            struct ta_probe *probe, ta_chrome *chrome);
/* Its probes are detached; NULL is fine. TA_E_FILE: not all of it could be written. */
TA_API int ta_chrome_close(ta_chrome *chrome);

/* For tests: what threads do is held up at their events, and let go in the order of a script.
 *
 *   ta_expect_open(0, &x);
 *   ta_lock(); ta_expect_attach(x, traceHello_point(), &probe); ta_unlock();
 *   ... threads begin ...
 *   ta_expect_pause(x, "worker", "hello.traceHello(who=\"JP\")");   -- the thread "worker" stands there
 *   ... look at what it may not change now ...
 *   ta_expect_event(x, "main", "hello.traceHello(who=\"Kirr\")");   -- worker goes on, then main's event comes
 *   if (ta_expect_end(x) != TA_OK) puts(ta_expect_fault(x));         -- nothing else came
 *   ta_expect_close(x);
 *
 * A thread is known by the name it gave itself here (31 bytes at most), else by pthread_setname_np(). Once a
 * step fails every thread goes on, later steps answer TA_E_MISUSE, and the fault text has the steps before,
 * what was expected and what came, and where other threads stand. end() reports an event that no step expects, if
 * its thread stands there by then.
 *
 * In a forked child no thread stands, and the script's calls answer TA_E_MISUSE.
 *
 * Errors    TA_E_UNEXPECTED: another event. TA_E_TIMEOUT: none within deadline_ms (0: 30 s). */
typedef struct ta_expect ta_expect;
TA_API int ta_expect_open(int64_t deadline_ms, ta_expect **out);
TA_API int ta_expect_attach(ta_expect *x, struct ta_tracepoint *at, struct ta_probe *probe);
TA_API void ta_expect_name(const char *thread);
TA_API int ta_expect_pause(ta_expect *x, const char *thread, const char *text);
TA_API void ta_expect_go(ta_expect *x); /* the one that was paused; a next step does it, too */
TA_API int ta_expect_event(ta_expect *x, const char *thread, const char *text);
/* Every thread that stands goes on. TA_E_MISUSE: failed before. */
TA_API int ta_expect_end(ta_expect *x);
TA_API const char *ta_expect_fault(const ta_expect *x); /* empty: none */
TA_API int ta_expect_close(ta_expect *x);               /* detaches its probes */

/* The rest is for what `tracectl tracepoints gen` writes. Each change counts the version on: a source of another
 * version does not compile, and what was compiled with one neither links nor loads. */
#define TA_TRACE_ABI 2
TA_API extern const char ta_trace_abi_2;

/* A module's events as an experiment; n of them. */
struct ta_trace_spec {
  const char *text;
  unsigned events;
};
#define TA_TRACE_NO_EVENT 0xffffffffu

struct ta_tracepoint {
  struct ta_probe *first; /* NULL: no probe is attached */
  const char *module, *name;
  const struct ta_param *params;
  unsigned n, event; /* which of the spec it is; TA_TRACE_NO_EVENT: none */
  ta_probe_fn *pack; /* a probe's fn that calls ta_call_run() */
  const struct ta_trace_spec *spec;
} __attribute__((aligned(64)));

/* Where a thread passes a tracepoint: the line that signals it, and the frame that is of. */
struct ta_passing {
  const void *pc, *frame;
  const struct ta_passing *outer; /* within a probe that passes another */
};
#define TA_PASSING                                                                                 \
  { __builtin_return_address(0), *(void **)__builtin_frame_address(0), NULL }

#define TA_TRACE_PRIVATE __attribute__((visibility("hidden")))
#define TA_TRACE_SLOW    __attribute__((visibility("hidden"), cold, noinline))
/* Nothing refers to it, and the linker must keep it. */
#define TA_TRACE_KEPT __attribute__((used))
#ifdef __has_attribute
#if __has_attribute(retain)
#undef TA_TRACE_KEPT
#define TA_TRACE_KEPT __attribute__((used, retain))
#endif
#endif
#define TA_TRACE_IS_ON(at)                                                                         \
  __builtin_expect(__atomic_load_n(&(at)->first, __ATOMIC_RELAXED) != NULL, 0)

/* Behind a call that must stay one: a jump would leave who called out of its stacks. */
#define TA_TRACE_STAY __asm__ volatile("")

TA_API int ta_probe_attach(struct ta_probe_group *group, struct ta_tracepoint *at,
                           struct ta_probe *probe, ta_probe_fn *fn, void *self);
/* Between the two a probe that is reached stays what it is. begin answers the first one. */
TA_API const struct ta_probe *ta_passing_begin(const struct ta_tracepoint *at,
                                               struct ta_passing *here);
TA_API void ta_passing_end(const struct ta_passing *here);
TA_API void ta_call_run(void *probe, const struct ta_arg *args);

/* An event's note in the program: module NUL name NUL (arguments) NUL signature NUL file:line NUL. */
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
