/* SPDX-License-Identifier: Apache-2.0 */
/* libtraceagent, experiments: a program's own kinds of events, and its own data for their reader.
 *
 * A log line (ta_log()) is for rare events that people read. Every Go tool shows it, and it needs no declaration, but its whole
 * text is written each time. An experiment is for frequent events, or for places where no goroutine runs. Its events are a few
 * numbers each, whose types and names are declared once. They may occur in a wait or a system call, have sequence numbers of
 * their own, and refer to tables and blobs. Go's tools do not know experiments: `tracectl fetch` omits their events,
 * `fetch --full` keeps them.
 *
 *   static const char spec[] = "experiment Cache\n"
 *                              "event Hit key_string bytes_value\n"
 *                              "event Evict ctx=M lru_value lru_seq\n";
 *   enum { HIT, EVICT, EVENTS };
 *   static ta_event event[EVENTS];
 *   static ta_sequence lru_order;
 *
 *   ta_experiment_register(spec, NULL, event, EVENTS);             -- once, at any time
 *   ta_experiment_emit(event[HIT], name, n, 0, 0);
 *   TA_ATOMIC(lru_remove(lru), ta_experiment_emit(event[EVICT], 7, TA_SEQUENCE(&lru_order), 0, 0));
 *
 * An argument is name(_type)?: for _string pass a ta_name, for _stack a ta_name or TA_STACK_HERE, for _g a ta_fiber,
 * for _seq TA_SEQUENCE() of a ta_sequence that still exists, for all others the number itself. At most four. ctx says
 * where the event may occur: MPG and MP on a running thread, M and any on every thread. `tracectl tracepoints check
 * SPEC` reads a spec and reports its errors.
 *
 * This interface is itself experimental: unlike traceagent.h it may change with any release, and TA_EXPERIMENTS_ABI with it. If
 * a program was compiled with another TA_EXPERIMENTS_ABI than the library's, registering returns TA_E_CONFIG (ta_strerror()
 * shows both numbers) and the events of its experiments are not written. All its other events are.
 *
 * Memory    60 KiB for registered experiments; batches belong to the session.
 * Threads   every call from any thread.
 * Errors    as in traceagent.h. Needs version 23 or later of the trace's header; with 22 nothing is written. */
#ifndef TRACEEXPERIMENT_H
#define TRACEEXPERIMENT_H

#include "traceagent.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TA_EXPERIMENTS_ABI 1

typedef uint8_t ta_experiment; /* 0: none */
typedef uint8_t ta_event;      /* 0: none, and emitting it does nothing */

/* Order of the operations on one object: a counter that restarts at one in each generation. Zero it at first; use one
 * for each object that an X_seq argument counts. */
typedef struct {
  uint64_t word[2];
} ta_sequence;
#define TA_SEQUENCE(s) ((uint64_t)(uintptr_t)(s))

/* Registers one experiment and its n events, in the order of their lines; at any time, also in a hold. Registering the
 * same again returns the same numbers, in every session of this process. TA_E_CONFIG: the spec is wrong (ta_strerror()
 * says where), it does not have n events, or all numbers are used: 119 events, 32 experiments. out may be NULL. */
TA_API int ta_experiment_register(const char *spec, ta_experiment *out, ta_event *events,
                                  unsigned n);
/* Registers for a caller that was compiled with the TA_EXPERIMENTS_ABI abi. A macro turns the call above into this
 * one; the function above assumes 1. */
TA_API int ta_experiment_register_abi(unsigned abi, const char *spec, ta_experiment *out,
                                      ta_event *events, unsigned n);
#define ta_experiment_register(spec, out, events, n)                                               \
  ta_experiment_register_abi(TA_EXPERIMENTS_ABI, spec, out, events, n)

/* Value for a _stack: the stack of the emit function's caller if the session has stacks (stack_depth), else none. */
#define TA_STACK_HERE UINT32_MAX

TA_API void ta_experiment_emit(ta_event event, uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/* Keeps the generation from ending until hold_end(), so that an action and the events and bytes that describe it are in
 * the same one. Keep it short, and never wait for another thread in it. May be nested. Other calls of the agent are
 * ignored meanwhile and count as misused. */
TA_API void ta_hold_begin(void);
TA_API void ta_hold_end(void);

/* Does op and writes its event in the same generation: otherwise one may end between the two, and the trace misleads. */
#define TA_ATOMIC(op, event)                                                                       \
  do {                                                                                             \
    ta_hold_begin();                                                                               \
    op;                                                                                            \
    event;                                                                                         \
    ta_hold_end();                                                                                 \
  } while (0)

/* Writes bytes for the experiment's reader that belong to the whole generation: tables that its events refer to. The
 * bytes of one call stay together, at most 64,000. stream: a name of at most 64 letters, digits and . _ / - under which
 * the reader finds them; 0: the experiment's bare batches. Put several calls for the same generation into a hold. */
TA_API void ta_experiment_write(ta_experiment experiment, ta_name stream, const void *bytes,
                                size_t n);

/* Emits an event with up to 64 MiB of bytes: its argument called blob is set to refer to them, whatever value was
 * passed for it. stream is as above, but must not be 0. */
TA_API void ta_emit_blob(ta_event event, ta_name stream, const void *bytes, size_t n, uint64_t a,
                         uint64_t b, uint64_t c, uint64_t d);

/* Memory objects, in the nine events of Go's AllocFree experiment: any reader of Go's traces accepts them, `fetch`
 * keeps them, and online/event/allocfree.h decodes addresses, sizes and names. A session writes them if allocfree is
 * set in its config; otherwise a call only reads one word. With TRACEAGENT_MALLOC=1 libtraceagent-preload.so makes the
 * calls for a program's malloc() and free().
 *
 *   void *pool_take(struct pool *p) {
 *     struct item *item = ...;
 *     ta_memory_tell(TA_OBJECT_ALLOC, item, sizeof *item, name_of_item);   -- when the caller owns it
 *   void pool_give(struct pool *p, struct item *item) {
 *     ta_memory_tell(TA_OBJECT_FREE, item, 0, 0);                          -- before another can own it
 *
 * object  has bytes and a type name; objects of the same size and name have one type. Up to 8192 types a generation;
 *         further objects have none. For free only `at` is used.
 * span    pages that objects are cut from. type 0: an allocator's span; else the span holds one object of that type.
 * stack   a fiber's stack, written with its size rounded up to a power of two. The session writes the threads' own
 *         stacks; if a thread's first call is this one, in a later generation.
 * exists  reports an object from before the session. Such an object may also be freed without this report: readers
 *         accept a free without an alloc.
 *
 * Each call is an event of 5 to 10 bytes. It may be made in a wait, in a system call, in a hold. */
enum ta_memory {
  TA_SPAN_EXISTS, /* in the order of the event numbers */
  TA_SPAN_ALLOC,
  TA_SPAN_FREE,
  TA_OBJECT_EXISTS,
  TA_OBJECT_ALLOC,
  TA_OBJECT_FREE,
  TA_STACK_EXISTS,
  TA_STACK_ALLOC,
  TA_STACK_FREE,
};
TA_API void ta_memory_tell(enum ta_memory what, const void *at, size_t bytes, ta_name type);

#ifdef __cplusplus
}
#endif
#endif
