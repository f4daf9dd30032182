/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through rules.def and events.def row by row, and tests what they promise for every event. test_order.c tests what is
 * special for each event. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/order_text.h"
#include "wire/spec.h"

enum must { ANY, HAS, NOT };
struct need {
  enum must m, p, g;
};

#define RULE(ID, before, ready, after, apply) [TW_EV_##ID] = before,
#define CTX(m, p, g)                                                                               \
  { m, p, g }
static const struct need needs[UINT8_MAX + 1] = {
#include "online/order/rules.def"
};
#undef RULE
#define RULE(ID, ...) [TW_EV_##ID] = true,
static const bool has_rule[UINT8_MAX + 1] = {
#include "online/order/rules.def"
};

enum { NEW_G = 5, SLEEPER = 2, MARK = 8191 /* FF 3F on the wire, as nothing else here */ };

/* Returns a value that fits the scene below, or any id that exists there. */
static uint64_t fitting(uint8_t type, enum tw_arg_type arg) {
  switch (arg) {
  case TW_ARG_G: return type == TW_EV_GO_UNBLOCK ? SLEEPER : NEW_G;
  case TW_ARG_M: return UINT64_MAX;
  default: return 1;
  }
}

/* Writes one line; argument number `marked` is MARK. */
static void say(char *out, size_t room, uint8_t type, unsigned marked) {
  const struct tw_spec *spec = tw_spec(type);
  size_t at = (size_t)snprintf(out, room, "%s dt=1", spec->name);

  for (unsigned i = 0; i < spec->nargs; i++)
    at += (size_t)snprintf(out + at, room - at, " %s=%lu", spec->args[i].label,
                           i == marked ? MARK : fitting(type, spec->args[i].type));
  snprintf(out + at, room - at, "\n");
}

#define ON_A_THREAD "EventBatch gen=1 m=0 time=0\n"
#define WITH_A_PROC ON_A_THREAD "ProcStatus dt=1 p=0 pstatus=1\n"
#define RUNNING     WITH_A_PROC "GoStatus dt=1 g=1 m=0 gstatus=2\n"

static void expect_refusal(uint8_t type, const char *context, const char *words) {
  char line[200], text[600], want[100];

  say(line, sizeof line, type, UINT8_MAX);
  snprintf(text, sizeof text, "Trace Go1.23\n%s%s", context, line);
  snprintf(want, sizeof want, "%s %s", tw_spec(type)->name, words);
  struct tt_run run = tt_order_text(text);
  TT_BROKEN(run, want);
  tt_run_fini(&run);
}

/* A9, A10 */
Test(rules, an_event_is_refused_on_a_thread_that_lacks_what_it_needs) {
  unsigned tried = 0;

  for (unsigned type = 0; type <= UINT8_MAX; type++) {
    if (!has_rule[type]) continue;
    const struct need *need = &needs[type];
    if (need->m == HAS) {
      expect_refusal((uint8_t)type, "EventBatch gen=1 m=18446744073709551615 time=0\n",
                     "needs a thread");
      tried++;
    }
    if (need->p == HAS)
      expect_refusal((uint8_t)type, ON_A_THREAD, "on a thread without a proc"), tried++;
    if (need->g == HAS)
      expect_refusal((uint8_t)type, need->p == HAS ? WITH_A_PROC : ON_A_THREAD,
                     "on a thread without a goroutine"),
          tried++;
    if (need->g == NOT)
      expect_refusal((uint8_t)type, RUNNING, "on a thread that has a goroutine"), tried++;
  }
  cr_assert_gt(tried, 70);
}

/* Orders the scene with the event in it. table: TW_EV_STRING or TW_EV_STACK; then the table's entry MARK gets another number,
 * so it is missing. 0: nothing is missing. */
static struct tt_run order_with_mark(uint8_t type, unsigned marked, uint8_t table) {
  struct tt_run run = { 0 };
  struct tb_buf bytes;
  char line[200], text[600];

  say(line, sizeof line, type, marked);
  snprintf(text, sizeof text,
           "Trace Go1.23\n" RUNNING "GoStatus dt=1 g=2 m=18446744073709551615 gstatus=4\n%s", line);
  tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&bytes, &run.mem);
  tt_trace_bytes(text, &run.mem, &bytes);
  if (table != 0) {
    unsigned char *entry = memmem(bytes.data, bytes.len, (char[]){ table, '\xff', '\x3f' }, 3);
    cr_assert_not_null(entry);
    entry[1] = 0xfe;
  }
  tt_order_bytes(&run, bytes.data, bytes.len);
  tb_buf_fini(&bytes);
  return run;
}

Test(rules, an_event_that_names_a_string_or_stack_its_generation_lacks_is_refused) {
  unsigned tried = 0;

  for (unsigned type = 0; type <= UINT8_MAX; type++) {
    const struct tw_spec *spec = tw_spec((uint8_t)type);
    for (unsigned i = 0; has_rule[type] && i < spec->nargs; i++) {
      bool string = spec->args[i].type == TW_ARG_STRING;
      char want[100];
      if (!string && spec->args[i].type != TW_ARG_STACK) continue;
      struct tt_run run = order_with_mark((uint8_t)type, i, 0);
      TT_OK(run);
      tt_run_fini(&run);
      run = order_with_mark((uint8_t)type, i, string ? TW_EV_STRING : TW_EV_STACK);
      snprintf(want, sizeof want, "%s names %s %d, which", spec->name, string ? "string" : "stack",
               MARK);
      TT_BROKEN(run, want);
      tt_run_fini(&run);
      tried++;
    }
  }
  cr_assert_gt(tried, 25);
}

/* Two threads claim the same goroutine or proc, which a made-up trace may say. What one thread takes away, the other must not
 * find again. */
#define SAME_GOROUTINE                                                                             \
  "EventBatch gen=1 m=1 time=5\nProcStatus dt=1 p=1 pstatus=1\nGoStatus dt=1 g=1 m=1 gstatus=2\n"  \
  "GoDestroy dt=1\n"

Test(rules, a_state_that_only_a_made_up_trace_can_reach_is_refused) {
  static const struct {
    const char *text, *words;
  } scenes[] = {
    { RUNNING "STWBegin dt=50 kind_string=1 stack=0\n" SAME_GOROUTINE,
      "STWBegin on goroutine 1, which does not exist" },
    { RUNNING "UserRegionBegin dt=50 task=0 name_string=1 stack=0\n" SAME_GOROUTINE,
      "UserRegionBegin on goroutine 1, which does not exist" },
    { RUNNING "UserRegionEnd dt=50 task=0 name_string=1 stack=0\n" SAME_GOROUTINE,
      "UserRegionEnd on goroutine 1, which does not exist" },
    { RUNNING "GCMarkAssistActive dt=1 g=77\n",
      "GCMarkAssistActive on goroutine 77, which does not exist" },
    { WITH_A_PROC "GoStatus dt=1 g=1 m=0 gstatus=3\nGoSyscallEnd dt=1\n",
      "GoSyscallEnd: proc 0 is not in a system call" },
    { WITH_A_PROC "GoStatus dt=1 g=1 m=0 gstatus=3\nGoDestroySyscall dt=1\n",
      "GoDestroySyscall: proc 0 is not in a system call" },
    { WITH_A_PROC "ProcStop dt=50\n"
                  "EventBatch gen=1 m=1 time=5\nProcStatus dt=1 p=0 pstatus=1\nProcStop dt=1\n",
      "ProcStop of proc 0, which does not run" },
    { ON_A_THREAD "ProcStatus dt=1 p=0 pstatus=3\nProcStatus dt=1 p=5 pstatus=1\n"
                  "EventBatch gen=1 m=1 time=5\nProcStatus dt=1 p=0 pstatus=4\n",
      "proc 0 is about to be stolen, but no thread has it" },
    { RUNNING "EventBatch gen=1 m=3 time=5\nGoStatus dt=1 g=2 m=3 gstatus=3\n"
              "EventBatch gen=2 m=0 time=90\nProcStatus dt=1 p=0 pstatus=1\n"
              "GoStatus dt=1 g=1 m=0 gstatus=2\nGoStatus dt=1 g=2 m=0 gstatus=3\n",
      "goroutine 2 is in a system call on this thread, which has goroutine 1" },
  };

  for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
    char text[800];

    snprintf(text, sizeof text, "Trace Go1.23\n%s", scenes[i].text);
    struct tt_run run = tt_order_text(text);
    TT_BROKEN(run, scenes[i].words);
    tt_run_fini(&run);
  }
}

/* A1: nothing is skipped. The byte of HeapAlloc is replaced by each other value. */
Test(rules, a_byte_that_is_no_timed_event_is_refused) {
  for (unsigned type = 0; type <= UINT8_MAX; type++) {
    struct tt_run run = { 0 };
    struct tb_buf bytes;
    char want[60];

    if (has_rule[type]) continue;
    tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
    tb_buf_init(&bytes, &run.mem);
    tt_trace_bytes("Trace Go1.26\n" RUNNING "HeapAlloc dt=1 heapalloc_value=8191\n", &run.mem,
                   &bytes);
    unsigned char *at = memmem(bytes.data, bytes.len, "\x25\x01\xff\x3f", 4);
    cr_assert_not_null(at);
    *at = (unsigned char)type;
    tt_order_bytes(&run, bytes.data, bytes.len);
    snprintf(want, sizeof want, "type %u", type);
    TT_BROKEN(run, want);
    tb_buf_fini(&bytes);
    tt_run_fini(&run);
  }
}
