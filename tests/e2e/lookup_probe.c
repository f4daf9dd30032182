/* SPDX-License-Identifier: Apache-2.0 */
/* Built with real.c, lookup.c and rows of its own beside those of calls.def. Compares every row
 * with dlsym(), then prints what four of its rows return, and what versions of one of them
 * return. */
#include <dlfcn.h>

#include "agent/preload/lookup.h"
#include "agent/preload/preload.h"

int main(void) {
  ta_real_find();
#define EACH(ret, name, params)                                                                    \
  do {                                                                                             \
    void *theirs = dlsym(RTLD_NEXT, #name), *ours = *(void **)&ta_real.name;                       \
    if (theirs == ours || (theirs == NULL && ours != NULL)) break;                                 \
    printf("%s: %p, not %p\n", #name, ours, theirs);                                               \
  } while (0);
#include "agent/preload/each.h"
  bool refused = TA_REAL(pthread_has_not_this)() == ENOSYS;
  errno = 0;
  refused = refused && TA_REAL(no_libc_has_this)() == -1 && errno == ENOSYS;
  int (*version[4])(void) = { NULL };
  const struct ta_wanted wanted[] = { { "changed", (void **)&version[0], "V1" },
                                      { "changed", (void **)&version[1], "V2" },
                                      { "changed", (void **)&version[2], "V3" },
                                      { "twice", (void **)&version[3], "V3" } };
  ta_lookup_next(wanted, 4);
  printf("%d %d %d %d %s %d %d %s %d\n", TA_REAL(twice)(), TA_REAL(only_sysv)(), TA_REAL(changed)(),
         TA_REAL(indirect)(), refused ? "refused" : "not refused", version[0](), version[1](),
         version[2] == NULL ? "none" : "one", version[3]());
  return 0;
}
