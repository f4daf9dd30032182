/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/world.h"

/* The malloc() that is used without this file: a sanitizer's, else the C library's. */
#ifdef TC_SANITIZED
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif
void *REAL(malloc)(size_t bytes);
void *REAL(calloc)(size_t n, size_t bytes);
void *REAL(realloc)(void *old, size_t bytes);

/* Returns whether the caller is in the program itself, not in a library. */
static bool is_own(const void *caller) {
  extern const char __executable_start[], etext[];

  return (uintptr_t)caller >= (uintptr_t)__executable_start && (uintptr_t)caller < (uintptr_t)etext;
}

bool sim_is_short(const void *caller) {
  struct sim_world *world = sim_world;

  if (world == NULL || world->no_memory == NULL || (world->running == NULL && world->inside == 0))
    return false;
  if (!world->no_memory(world->self, is_own(caller))) return false;
  errno = ENOMEM;
  return true;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t bytes) {
  return sim_is_short(CALLER) ? NULL : REAL(malloc)(bytes);
}

void *calloc(size_t n, size_t bytes) {
  return sim_is_short(CALLER) ? NULL : REAL(calloc)(n, bytes);
}

void *realloc(void *old, size_t bytes) {
  return sim_is_short(CALLER) ? NULL : REAL(realloc)(old, bytes);
}

void *reallocarray(void *old, size_t n, size_t bytes) {
  if (bytes != 0 && n > SIZE_MAX / bytes) return NULL;
  return sim_is_short(CALLER) ? NULL : REAL(realloc)(old, n * bytes);
}

static void *must(void *memory) {
  if (memory == NULL) abort();
  return memory;
}

void *sim_malloc(size_t bytes) {
  return must(REAL(malloc)(bytes));
}

void *sim_calloc(size_t n, size_t bytes) {
  return must(REAL(calloc)(n, bytes));
}

void *sim_reallocarray(void *old, size_t n, size_t bytes) {
  if (bytes != 0 && n > SIZE_MAX / bytes) abort();
  return must(REAL(realloc)(old, n * bytes));
}
