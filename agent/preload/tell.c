/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/frames.h"
#include "agent/preload/preload.h"

_Atomic unsigned ta_told = 1u << TA_TELL_EARLY;
__thread struct ta_here ta_here __attribute__((tls_model("initial-exec")));

static void say_end(struct ta_here *here) {
  ta_agent_begins();
  if (here->what == TA_TELL_CALL)
    ta_syscall_end();
  else
    ta_wait_end();
  ta_agent_ends();
  here->frame = NULL;
}

bool ta_tell_begin(enum ta_tell what, char *frame) {
  struct ta_here *here = &ta_here;

  if (TB_UNLIKELY(here->frame != NULL)) {
    if (frame < here->frame) return false;
    say_end(here);
  }
  here->what = what;
  here->frame = frame;
  ta_agent_begins();
  ta_origin =
      (struct ta_origin){ __builtin_return_address(0), frame }; /* stacks begin with the wrapper */
  if (what == TA_TELL_CALL)
    ta_syscall_begin();
  else
    ta_wait_begin((ta_name)what);
  ta_origin = (struct ta_origin){ NULL, NULL };
  ta_agent_ends();
  return true;
}

void ta_tell_end(char *frame) {
  struct ta_here *here = &ta_here;

  if (TB_LIKELY(here->frame == frame)) say_end(here);
}
