/* SPDX-License-Identifier: Apache-2.0 */
/* What the names mean without us: the next object's. */
#include <dlfcn.h>
#include <string.h>

#include "agent/preload/preload.h"

struct ta_real ta_real;
__thread bool ta_real_looks_up __attribute__((tls_model("initial-exec")));

/* Condition variables changed once, and both kinds are still there. The new one is asked for by its version, because a
 * plain look-up has not always found it. */
static void *find(const char *name) {
  static const char *const versions[] = { "GLIBC_2.3.2", "GLIBC_2.17" };
  static const char changed[] = "pthread_cond_";

  if (strncmp(name, changed, sizeof changed - 1) != 0) return dlsym(RTLD_NEXT, name);
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    void *found = dlvsym(RTLD_NEXT, name, versions[i]);
    if (found != NULL) return found;
  }
  return dlsym(RTLD_NEXT, name);
}

/* May run on several threads at once: all of them find the same. */
#define FIND(name) __atomic_store_n((void **)&ta_real.name, find(#name), __ATOMIC_RELAXED);

void ta_real_find(void) {
  int before = errno;

  ta_real_looks_up = true;
#define EACH(ret, name, params) FIND(name)
#include "agent/preload/each.h"
  ta_real_looks_up = false;
  errno = before;
}
