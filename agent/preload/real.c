/* SPDX-License-Identifier: Apache-2.0 */
/* The real functions: those of the next object. A name that neither libc nor another object has is not exported if this library
 * was built against that libc (CMakeLists.txt); under an older libc the call fails with ENOSYS. */
#include <string.h>

#include "agent/preload/lookup.h"
#include "agent/preload/preload.h"

struct ta_real ta_real;

static const struct ta_wanted wanted[] = {
#define EACH(ret, name, params) { #name, (void **)&ta_real.name, NULL },
#include "agent/preload/each.h"
};
#define WANTED (sizeof wanted / sizeof *wanted)
_Static_assert(WANTED <= TA_LOOKUP_MAX, "all names are found at once");

static intptr_t refuse(void) {
  errno = ENOSYS;
  return -1;
}
static intptr_t refuse_by_number(void) {
  return ENOSYS;
}

/* Functions of POSIX threads return their error. */
static void *refusal_of(const char *name) {
  intptr_t (*refusal)(void) = strncmp(name, "pthread_", 8) == 0 ? refuse_by_number : refuse;

  return *(void **)&refusal;
}

/* May run on several threads at once: all of them find the same. */
void ta_real_find(void) {
  int before = errno;

  ta_lookup_next(wanted, WANTED);
  for (size_t i = 0; i < WANTED; i++)
    if (__atomic_load_n(wanted[i].to, __ATOMIC_RELAXED) == NULL)
      __atomic_store_n(wanted[i].to, refusal_of(wanted[i].name), __ATOMIC_RELEASE);
  errno = before;
}
