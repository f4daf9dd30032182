/* SPDX-License-Identifier: Apache-2.0 */
/* The heap, whichever allocator the program has: the bytes in use, and each object (objects.c). A thread counts its own
 * bytes. When its count reaches STEP_BYTES, up or down, it adds the count to the total, writes the total and starts at 0
 * again. If neither is traced, a call only reads one variable more. */
#include <malloc.h>
#include <string.h>

#include "agent/preload/preload.h"

enum { STEP_BYTES = 64 << 10 };

static _Atomic int64_t in_use;
/* Bytes of this thread that are not yet added to in_use. */
static __thread int64_t since __attribute__((tls_model("initial-exec")));

static void count(int64_t bytes) {
  since += bytes;
  if (TB_LIKELY(since > -STEP_BYTES && since < STEP_BYTES)) return;
  int64_t all = atomic_fetch_add_explicit(&in_use, since, memory_order_relaxed) + since;
  since = 0;
  ta_hook_begins();
  ta_heap_alloc(all > 0 ? (uint64_t)all : 0);
  ta_hook_ends();
}

static int64_t size_of(void *p) {
  return (int64_t)TA_REAL(malloc_usable_size)(p);
}

/* Another thread may get a block as soon as it is freed: so an object's end is written before the call, and its begin
 * after the call. */

enum {
  ALL = 1u << TA_TRACE_HEAP | 1u << TA_TRACE_OBJECTS | 1u << TA_TRACE_EARLY | 1u << TA_TRACE_LATE
};

/* Marks the thread as inside its allocator: late.c must not begin a stream in a handler that interrupts the call. */
#define WITHIN(call)                                                                               \
  ({                                                                                               \
    ta_here.inside++;                                                                              \
    __typeof__(call) answer_ = (call);                                                             \
    ta_here.inside--;                                                                              \
    answer_;                                                                                       \
  })

static __attribute__((noinline)) void made(void *p) {
  if (p == NULL) return;
  if (ta_traces(TA_TRACE_EARLY)) {
    if (ta_objects_are_early()) ta_objects_keep(p);
    return;
  }
  if (ta_traces(TA_TRACE_HEAP)) count(size_of(p));
  if (ta_traces(TA_TRACE_OBJECTS)) ta_objects_made(p);
  if (ta_traces(TA_TRACE_LATE)) ta_late_look_at_bytes();
}

static __attribute__((noinline)) void gone(void *p) {
  if (p == NULL) return;
  if (ta_traces(TA_TRACE_EARLY)) {
    ta_objects_forget(p);
    return;
  }
  if (ta_traces(TA_TRACE_HEAP)) count(-size_of(p));
  if (ta_traces(TA_TRACE_OBJECTS)) ta_objects_gone(p);
}

static void *traced(void *p) {
  made(p);
  return p;
}

#define MAKE(name, ...)                                                                            \
  (TB_LIKELY(!ta_traces_any(ALL)) ? TA_REAL(name)(__VA_ARGS__)                                     \
                                  : traced(WITHIN(TA_REAL(name)(__VA_ARGS__))))

TA_API void *malloc(size_t n) {
  return MAKE(malloc, n);
}

TA_API void *calloc(size_t n, size_t size) {
  return MAKE(calloc, n, size);
}

TA_API void *memalign(size_t alignment, size_t n) {
  return MAKE(memalign, alignment, n);
}

TA_API void *aligned_alloc(size_t alignment, size_t n) {
  return MAKE(aligned_alloc, alignment, n);
}

TA_API void *valloc(size_t n) {
  return MAKE(valloc, n);
}

TA_API void *pvalloc(size_t n) {
  return MAKE(pvalloc, n);
}

TA_API int posix_memalign(void **out, size_t alignment, size_t n) {
  int error = WITHIN(TA_REAL(posix_memalign)(out, alignment, n));

  if (TB_UNLIKELY(ta_traces_any(ALL)) && error == 0) made(*out);
  return error;
}

TA_API void *realloc(void *p, size_t n) {
  if (TB_LIKELY(!ta_traces_any(ALL))) return TA_REAL(realloc)(p, n);
  gone(p);
  void *moved = WITHIN(TA_REAL(realloc)(p, n));
  if (moved != NULL)
    made(moved);
  else if (n != 0)
    made(p); /* realloc() has failed, the object still exists */
  return moved;
}

TA_API void *reallocarray(void *p, size_t n, size_t size) {
  size_t all;

  if (!__builtin_mul_overflow(n, size, &all)) return realloc(p, all);
  errno = ENOMEM;
  return NULL;
}

TA_API void free(void *p) {
  if (TB_LIKELY(!ta_traces_any(ALL))) {
    TA_REAL(free)(p);
    return;
  }
  gone(p);
  ta_here.inside++;
  TA_REAL(free)(p);
  ta_here.inside--;
}

/* The name malloc refers to the function that the loader found first, perhaps another library's. */
extern void *own_malloc(size_t n)
    __attribute__((alias("malloc"), visibility("hidden"), copy(malloc)));

bool ta_heap_is_behind(void) {
  void *(*volatile first)(size_t) = malloc, *(*volatile ours)(size_t) = own_malloc;

  return first == ours;
}
