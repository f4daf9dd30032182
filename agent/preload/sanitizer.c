/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preload/sanitizer.h"

#include <stddef.h>

#include "agent/preload/lookup.h"

static const char *const names[][2] = {
  { "__asan_init", "-fsanitize=address" },  { "__hwasan_init", "-fsanitize=hwaddress" },
  { "__lsan_init", "-fsanitize=leak" },     { "__msan_init", "-fsanitize=memory" },
  { "__memprof_init", "-fmemory-profile" }, { "__rtsan_init", "-fsanitize=realtime" },
  { "__tsan_init", "-fsanitize=thread" },   { "__tysan_init", "-fsanitize=type" },
};
enum { NAMES = sizeof names / sizeof *names };

const char *ta_sanitizer(void) {
  void *found[NAMES] = { NULL };
  struct ta_wanted wanted[NAMES];

  for (size_t i = 0; i < NAMES; i++) wanted[i] = (struct ta_wanted){ names[i][0], &found[i], NULL };
  ta_lookup_next(wanted, NAMES);
  for (size_t i = 0; i < NAMES; i++)
    if (found[i] != NULL) return names[i][1];
  return NULL;
}
