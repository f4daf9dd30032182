/* SPDX-License-Identifier: Apache-2.0 */
/* The heap, whichever allocator the program has: how many bytes of it are in use, and each object (objects.c). Bytes a
 * thread counts by itself, and when it is STEP_BYTES away from what it last told, it adds that to what all have, and tells
 * the sum. Where nobody asked for either a call costs the look at one variable.
 *
 * dlsym() may allocate while the real functions are looked up. What is asked for then comes out of a small arena of our
 * own, and is never freed. */
#include <malloc.h>
#include <string.h>

#include "agent/preload/preload.h"

enum { ARENA_BYTES = 16 << 10, STEP_BYTES = 64 << 10 };

static unsigned char arena[ARENA_BYTES] __attribute__((aligned(16)));
static atomic_size_t arena_used;

static _Atomic int64_t in_use;
static __thread int64_t since __attribute__((tls_model("initial-exec"))); /* it was told */

static __attribute__((noinline, cold)) void *early(size_t n) {
  if (n > ARENA_BYTES) return NULL;
  size_t at = atomic_fetch_add(&arena_used, (n + 15) / 16 * 16);

  return at > ARENA_BYTES - n ? NULL : arena + at;
}

static bool is_early(const void *p) {
  return (const unsigned char *)p >= arena && (const unsigned char *)p < arena + ARENA_BYTES;
}

static __attribute__((noinline, cold)) bool find(void) {
  if (ta_real_looks_up) return false;
  ta_real_find();
  return true;
}

/* Whether the real functions are there; malloc() is found last. */
static inline bool found(void) {
  return TB_LIKELY(__atomic_load_n(&ta_real.malloc, __ATOMIC_ACQUIRE) != NULL) || find();
}
#define FOUND(name) (*__atomic_load_n(&ta_real.name, __ATOMIC_RELAXED))

static void count(int64_t bytes) {
  since += bytes;
  if (TB_LIKELY(since > -STEP_BYTES && since < STEP_BYTES)) return;
  int64_t all = atomic_fetch_add_explicit(&in_use, since, memory_order_relaxed) + since;
  since = 0;
  ta_agent_begins();
  ta_heap_alloc(all > 0 ? (uint64_t)all : 0);
  ta_agent_ends();
}

static int64_t size_of(void *p) {
  return (int64_t)TA_REAL(malloc_usable_size)(p);
}

/* What is told of the heap, in either way. Another thread may have a block as soon as it is free: so its end is told
 * before, and its beginning after. */

enum { ALL = 1u << TA_TELL_HEAP | 1u << TA_TELL_OBJECTS | 1u << TA_TELL_EARLY };

static __attribute__((noinline)) void made(void *p) {
  if (p == NULL) return;
  if (ta_tells(TA_TELL_EARLY)) ta_objects_keep(p);
  if (ta_tells(TA_TELL_HEAP)) count(size_of(p));
  if (ta_tells(TA_TELL_OBJECTS)) ta_objects_made(p);
}

static __attribute__((noinline)) void gone(void *p) {
  if (p == NULL) return;
  if (ta_tells(TA_TELL_EARLY)) ta_objects_forget(p);
  if (ta_tells(TA_TELL_HEAP)) count(-size_of(p));
  if (ta_tells(TA_TELL_OBJECTS)) ta_objects_gone(p);
}

static inline void *told(void *p) {
  if (TB_UNLIKELY(ta_tells_any(ALL))) made(p);
  return p;
}

TA_API void *malloc(size_t n) {
  return TB_LIKELY(found()) ? told(FOUND(malloc)(n)) : early(n);
}

TA_API void *calloc(size_t n, size_t size) {
  if (TB_LIKELY(found())) return told(FOUND(calloc)(n, size));
  return __builtin_mul_overflow(n, size, &n) ? NULL : early(n);
}

TA_API void *memalign(size_t alignment, size_t n) {
  return told(TA_REAL(memalign)(alignment, n));
}

TA_API void *aligned_alloc(size_t alignment, size_t n) {
  return told(TA_REAL(aligned_alloc)(alignment, n));
}

TA_API void *valloc(size_t n) {
  return told(TA_REAL(valloc)(n));
}

TA_API void *pvalloc(size_t n) {
  return told(TA_REAL(pvalloc)(n));
}

TA_API int posix_memalign(void **out, size_t alignment, size_t n) {
  int error = TA_REAL(posix_memalign)(out, alignment, n);

  if (error == 0) told(*out);
  return error;
}

static void *move_early(const unsigned char *p, size_t n) {
  size_t most = (size_t)(arena + ARENA_BYTES - p);
  void *moved = malloc(n);

  if (moved != NULL) memcpy(moved, p, n < most ? n : most);
  return moved;
}

TA_API void *realloc(void *p, size_t n) {
  if (TB_UNLIKELY(is_early(p) || !found())) return p == NULL ? early(n) : move_early(p, n);
  if (TB_LIKELY(!ta_tells_any(ALL))) return FOUND(realloc)(p, n);
  gone(p);
  void *moved = FOUND(realloc)(p, n);
  if (moved != NULL)
    made(moved);
  else if (n != 0)
    made(p); /* it is still there */
  return moved;
}

TA_API void *reallocarray(void *p, size_t n, size_t size) {
  size_t all;

  if (!__builtin_mul_overflow(n, size, &all)) return realloc(p, all);
  errno = ENOMEM;
  return NULL;
}

TA_API void free(void *p) {
  if (TB_UNLIKELY(is_early(p) || !found())) return;
  if (TB_UNLIKELY(ta_tells_any(ALL))) gone(p);
  FOUND(free)(p);
}
