/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/emit/stacks/frames.h"
#include "agent/host/process.h"
#include "agent/preload/preload.h"

TA_AT_FORK _Atomic unsigned ta_traced = 1u << TA_TRACE_EARLY;
__thread struct ta_here ta_here __attribute__((tls_model("initial-exec")));

static _Atomic ta_name names[TA_CALLS];

/* Returns the name that the programmer wrote: the compiler turns read into __read_chk. Of syscall() only futexes are traced. */
static ta_name name_of_call(const char *exported) {
  static const char checked[] = "_chk";
  char name[32];

  if (strcmp(exported, "syscall") == 0) return ta_name_of("futex");
  if (strncmp(exported, "__", 2) != 0) return ta_name_of(exported);
  snprintf(name, sizeof name, "%s", exported + 2);
  size_t kept = strlen(name) - (sizeof checked - 1);
  if (strcmp(name + kept, checked) == 0) name[kept] = 0;
  return ta_name_of(name);
}

void ta_trace_name_calls(void) {
#define EACH(ret, name, params)                                                                    \
  atomic_store_explicit(&names[TA_CALL_##name], name_of_call(#name), memory_order_relaxed);
#include "agent/preload/each.h"
}

static void write_end(struct ta_here *here) {
  ta_hook_begins();
  if (here->what == TA_TRACE_CALL)
    ta_syscall_end();
  else
    ta_wait_end();
  ta_hook_ends();
  here->frame = NULL;
}

/* Makes stacks begin with the wrapper; `pc` is in the wrapper's caller. */
static void begin_stack(const void *pc, char *frame) {
  ta_hook_begins();
  ta_origin = (struct ta_origin){ pc, frame };
}
static void end_stack(void) {
  ta_origin = (struct ta_origin){ NULL, NULL };
  ta_hook_ends();
}

/* Returns the lock's address: readers of a lock wait for it, writers for the next address (TA_WRITERS_OF). A joined thread is
 * not a lock, and some programs have many. */
static uintptr_t object_of(enum ta_trace what, const void *for_what) {
  return what == TA_TRACE_JOIN ? 0 : (uintptr_t)for_what & ~(uintptr_t)1;
}

bool ta_trace_begin(enum ta_trace what, enum ta_libc_call call, const void *for_what, int holder,
                    char *frame) {
  struct ta_here *here = &ta_here;
  ta_name name = atomic_load_explicit(&names[call], memory_order_relaxed);

  if (TB_UNLIKELY(here->frame != NULL)) {
    if (frame < here->frame) return false;
    write_end(here);
  }
  if (ta_is_late()) ta_late_look();
  here->what = what;
  here->frame = frame;
  begin_stack(__builtin_return_address(0), frame);
  if (what == TA_TRACE_CALL)
    ta_syscall_begin_in(name);
  else
    ta_wait_begin_in(name, (ta_name)what,
                     (struct ta_waited_for){ for_what, object_of(what, for_what),
                                             holder > 0 ? (uint32_t)holder : 0 });
  end_stack();
  return true;
}

void ta_trace_end(char *frame) {
  struct ta_here *here = &ta_here;

  if (TB_UNLIKELY(here->frame != frame)) return;
  write_end(here);
  if (ta_is_late()) ta_late_look();
}

struct ta_spawned ta_trace_thread_start(enum ta_libc_call call, ta_name name, char *frame) {
  const void *pc = __builtin_return_address(0);

  begin_stack(pc, frame);
  struct ta_spawned birth =
      ta_spawned_begin(name, atomic_load_explicit(&names[call], memory_order_relaxed), pc);
  end_stack();
  return birth;
}

void ta_trace_wake(enum ta_libc_call call, const void *what, enum ta_wake how, char *frame) {
  const void *pc = __builtin_return_address(0);

  begin_stack(pc, frame);
  ta_wake(what, how, atomic_load_explicit(&names[call], memory_order_relaxed), pc);
  end_stack();
}
