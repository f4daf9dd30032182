/* SPDX-License-Identifier: Apache-2.0 */
/* libtraceagent, experiments: events of a program's own kinds, and bytes of its own beside them.
 *
 * A log line (ta_log()) is for what happens seldom and is read by people: every Go tool shows it, it needs no
 * declaration, and it costs its text. An experiment is for what happens often, or where nothing runs: an event is a few
 * numbers, typed and named once, it can stand in a wait or a system call, be put in order by a number of its own, and
 * refer to tables and blobs. Go's tools do not know it: `tracectl fetch` leaves it out, `fetch --full` keeps it.
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
 * An argument is name(_type)?: _string takes a ta_name, _stack one, too, or TA_STACK_HERE, _g a ta_fiber, _seq
 * TA_SEQUENCE() of a ta_sequence that lives, all others the number itself. At most four. ctx says where the event may
 * stand: MPG and MP on a thread that runs, M and any on every thread. `tracectl tracepoints check SPEC` reads a spec
 * and says what is wrong with it.
 *
 * This interface is an experiment, too: unlike traceagent.h it may change with any release, and TA_EXPERIMENTS_ABI with
 * it. A program that was compiled with another number than the library's registers nothing: TA_E_CONFIG,
 * ta_strerror() has both numbers, and what it emits then is left out. The rest of its trace is as it was.
 *
 * Memory    60 KiB for what is registered; batches are the session's.
 * Threads   every call from any thread.
 * Errors    as in traceagent.h. Needs version 23 or later of the trace's header; before it nothing is written. */
#ifndef TRACEEXPERIMENT_H
#define TRACEEXPERIMENT_H

#include "traceagent.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TA_EXPERIMENTS_ABI 1

typedef uint8_t ta_experiment; /* 0: none */
typedef uint8_t ta_event;      /* 0: none, and emitting it does nothing */

/* The order of what is done to one thing: a counter that begins at one with each generation. Zeroed at first; one for
 * each thing that the spec's X_seq speaks of. */
typedef struct {
  uint64_t word[2];
} ta_sequence;
#define TA_SEQUENCE(s) ((uint64_t)(uintptr_t)(s))

/* One experiment and its n events, in the order of their lines; at any time, in a hold, too. Registering the same again
 * gives the same numbers, in every session of this process. TA_E_CONFIG: the spec is wrong (ta_strerror() says where),
 * n is another number of events than it has, or all numbers are taken: 119 events, 32 experiments. out may be NULL. */
TA_API int ta_experiment_register(const char *spec, ta_experiment *out, ta_event *events,
                                  unsigned n);
/* The same, and says which TA_EXPERIMENTS_ABI the caller was compiled with; the call above is made into it. Code
 * compiled before this existed says 1. */
TA_API int ta_experiment_register_abi(unsigned abi, const char *spec, ta_experiment *out,
                                      ta_event *events, unsigned n);
#define ta_experiment_register(spec, out, events, n)                                               \
  ta_experiment_register_abi(TA_EXPERIMENTS_ABI, spec, out, events, n)

/* For a _stack: the caller of the emit function, if the session has stacks (stack_depth); else none. */
#define TA_STACK_HERE UINT32_MAX

TA_API void ta_experiment_emit(ta_event event, uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/* Things that belong together: until hold_end() no generation ends, so that an action and the experiment's events
 * and bytes about it are in the same one. Keep it short, and let it not wait for another thread. May be
 * nested. Other calls of the agent say nothing in between, and count as misused. */
TA_API void ta_hold_begin(void);
TA_API void ta_hold_end(void);

/* Does op and writes its event, as one: without this, a generation may end between the two, and the trace misleads. */
#define TA_ATOMIC(op, event)                                                                       \
  do {                                                                                             \
    ta_hold_begin();                                                                               \
    op;                                                                                            \
    event;                                                                                         \
    ta_hold_end();                                                                                 \
  } while (0)

/* Bytes for the reader of the experiment, of the generation as a whole: tables that its events refer to. The
 * bytes of one call stay in one piece, at most 64,000 bytes. stream: a name of letters, digits and . _ / -, at most
 * 64, under which they are found; 0: the experiment's bare batches. Several calls that belong to one generation: in
 * a hold. */
TA_API void ta_experiment_write(ta_experiment experiment, ta_name stream, const void *bytes,
                                size_t n);

/* An event that carries bytes, up to 64 MiB: its argument called blob is made to refer to them; the argument given
 * there is not looked at. The stream, as above, which must be a name, distinguishes them. */
TA_API void ta_emit_blob(ta_event event, ta_name stream, const void *bytes, size_t n, uint64_t a,
                         uint64_t b, uint64_t c, uint64_t d);

/* Memory objects, in the nine events of Go's AllocFree experiment: any reader of Go's traces takes them, `fetch`
 * leaves them in, and online/event/allocfree.h makes addresses, sizes and names of them. A session writes them if
 * its config says allocfree, else a call costs a look at one word; libtraceagent-preload.so makes the calls for a
 * program's malloc() and free() with TRACEAGENT_MALLOC=1.
 *
 *   void *pool_take(struct pool *p) {
 *     struct item *item = ...;
 *     ta_memory_tell(TA_OBJECT_ALLOC, item, sizeof *item, name_of_item);   -- when it is the caller's
 *   void pool_give(struct pool *p, struct item *item) {
 *     ta_memory_tell(TA_OBJECT_FREE, item, 0, 0);                          -- before it can be another's
 *
 * object  bytes, and what it is called: two of the same size and name are one type. 8192 types a generation; an object
 *         beyond that has none. free: at alone counts.
 * span    pages, of which objects are made. type 0: an allocator's; else it holds one object of that type.
 * stack   that a fiber runs on; the session writes the threads' own: where a thread's first call is this one,
 *         in a later generation. Written as the power of two that holds it.
 * exists  what was there before the session. An object that was there before tracing may be freed all the same: a
 *         reader that finds the end of what never began knows that much.
 *
 * Each call is an event of 5 to 10 bytes. It may stand in a wait, in a system call, in a hold. */
enum ta_memory {
  TA_SPAN_EXISTS, /* in the order of the events' numbers */
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
