/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule of online/order/rules.def: an event that fits, an event that comes too early and
 * waits for another thread, an event that proves the trace broken. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/event/view.h"
#include "support/order_text.h"
#include "wire/spec.h"

#define GO22 "Trace Go1.22\n"
/* Thread 0 runs goroutine 1 on proc 0. */
#define RUNNING                                                                                    \
  "EventBatch gen=1 m=0 time=0\n"                                                                  \
  "ProcStatus dt=1 p=0 pstatus=1\n"                                                                \
  "GoStatus dt=1 g=1 m=0 gstatus=2\n"
/* Thread 1 runs goroutine 2 on proc 1; its events are a little later. */
#define RUNNING_TOO                                                                                \
  "EventBatch gen=1 m=1 time=10\n"                                                                 \
  "ProcStatus dt=1 p=1 pstatus=1\n"                                                                \
  "GoStatus dt=1 g=2 m=1 gstatus=2\n"

/* Macros, so that a failure names the line of its case. */
#define fits(text)                                                                                 \
  ({                                                                                               \
    struct tt_run run_ = tt_order_text(text);                                                      \
    TT_OK(run_);                                                                                   \
    run_;                                                                                          \
  })
#define refused(text, words)                                                                       \
  do {                                                                                             \
    struct tt_run run_ = tt_order_text(text);                                                      \
    TT_BROKEN(run_, words);                                                                        \
    tt_run_fini(&run_);                                                                            \
  } while (0)

static const struct to_event *find(const struct tt_run *run, enum tw_event type) {
  for (size_t i = 0; i < run->count; i++)
    if (run->events[i].type == type) return &run->events[i];
  cr_assert_fail("no %s was delivered", tw_spec((uint8_t)type)->name);
  return NULL;
}

/* The orderer's loop cannot handle an event without a rule. */
Test(order, every_event_with_a_time_has_a_rule_but_the_clock) {
  static const bool has_rule[UINT8_MAX + 1] = {
#define CTX(m, p, g)  0
#define RULE(ID, ...) [TW_EV_##ID] = true,
#include "online/order/rules.def"
#undef RULE
#undef CTX
  };

  for (unsigned type = 0; type <= UINT8_MAX; type++) {
    bool wanted = tw_spec_has_dt(tw_spec((uint8_t)type)) && type != TW_EV_CLOCK_SNAPSHOT;
    cr_assert_eq(has_rule[type], wanted, "event type %u", type);
  }
}

/* Procs */

/* B2 */
Test(order, proc_start_waits_for_the_stop) {
  struct tt_run run = fits(GO22 RUNNING "ProcStop dt=50\n"
                                        "EventBatch gen=1 m=1 time=5\n"
                                        "ProcStart dt=1 p=0 p_seq=1\n");
  tt_expect_order(&run, "m=0 ProcStop", "m=1 ProcStart");
  tt_run_fini(&run);
}

Test(order, proc_start_out_of_sequence_never_fits) {
  refused(GO22 RUNNING "ProcStop dt=50\n"
                       "EventBatch gen=1 m=1 time=5\n"
                       "ProcStart dt=1 p=0 p_seq=2\n",
          "no thread can go on");
}

Test(order, proc_start_without_thread_is_refused) {
  refused(GO22 "EventBatch gen=1 m=18446744073709551615 time=0\n"
               "ProcStatus dt=1 p=0 pstatus=2\n"
               "ProcStart dt=1 p=0 p_seq=1\n",
          "ProcStart needs a thread");
}

Test(order, proc_start_needs_an_idle_proc_and_a_thread_without_one) {
  refused(GO22 RUNNING "EventBatch gen=1 m=1 time=5\n"
                       "ProcStart dt=1 p=0 p_seq=1\n",
          "no thread can go on");
  refused(GO22 RUNNING "EventBatch gen=1 m=1 time=9\n"
                       "ProcStatus dt=1 p=1 pstatus=2\n"
                       "EventBatch gen=1 m=0 time=20\n"
                       "ProcStart dt=1 p=1 p_seq=1\n",
          "no thread can go on");
}

/* B3 */
Test(order, proc_stop_needs_a_proc) {
  refused(GO22 "EventBatch gen=1 m=0 time=0\n"
               "ProcStop dt=1\n",
          "ProcStop on a thread without a proc");
}

/* B5 */
Test(order, proc_status_twice_in_the_first_generation_must_agree) {
  refused(GO22 RUNNING "ProcStatus dt=1 p=0 pstatus=2\n",
          "proc 0 is stated to have status 2, but has 1");
  refused(GO22 RUNNING "ProcStatus dt=1 p=1 pstatus=5\n", "no status 5");
}

/* B4, C11 */
Test(order, blocked_syscall_end_waits_for_the_steal) {
  struct tt_run run = fits(GO22 RUNNING "GoSyscallBegin dt=1 p_seq=1 stack=0\n"
                                        "GoSyscallEndBlocked dt=1\n"
                                        "EventBatch gen=1 m=1 time=9\n"
                                        "ProcSteal dt=1 p=0 p_seq=2 m=0\n");
  tt_expect_order(&run, "m=0 GoSyscallBegin", "m=1 ProcSteal" /* by the clock it is later */,
                  "m=0 GoSyscallEndBlocked");
  cr_assert_eq(find(&run, TW_EV_PROC_STEAL)->args[3], TW_PROC_SYSCALL);
  cr_assert_eq(find(&run, TW_EV_GO_SYSCALL_END_BLOCKED)->p, TO_NONE);
  tt_run_fini(&run);
}

Test(order, a_steal_waits_for_the_system_call) {
  struct tt_run run = fits(GO22 RUNNING "GoSyscallBegin dt=50 p_seq=1 stack=0\n"
                                        "EventBatch gen=1 m=1 time=1\n"
                                        "ProcSteal dt=1 p=0 p_seq=2 m=0\n");
  tt_expect_order(&run, "m=0 GoSyscallBegin", "m=1 ProcSteal");
  tt_run_fini(&run);
}

Test(order, a_steal_from_the_wrong_thread_is_refused) {
  refused(GO22 RUNNING "GoSyscallBegin dt=1 p_seq=1 stack=0\n" RUNNING_TOO
                       "ProcSteal dt=9 p=0 p_seq=2 m=1\n",
          "proc 0 is stolen from thread 1, which has proc 1");
  refused(GO22 RUNNING "GoSyscallBegin dt=1 p_seq=1 stack=0\n" RUNNING_TOO
                       "ProcSteal dt=9 p=0 p_seq=2 m=7\n",
          "thread 7, which does not exist");
}

/* B4 */
Test(order, a_thread_may_steal_its_own_proc) {
  struct tt_run run = fits(GO22 RUNNING "GoSyscallBegin dt=1 p_seq=1 stack=0\n"
                                        "ProcSteal dt=1 p=0 p_seq=2 m=0\n"
                                        "GoSyscallEndBlocked dt=1\n");
  tt_expect_order(&run, "m=0 ProcSteal", "m=0 GoSyscallEndBlocked");
  tt_run_fini(&run);
}

/* B4, B5 */
Test(order, an_abandoned_proc_can_be_stolen_from_nobody) {
  struct tt_run run = fits(GO22 "EventBatch gen=1 m=1 time=0\n"
                                "ProcStatus dt=1 p=0 pstatus=4\n"
                                "ProcSteal dt=1 p=0 p_seq=1 m=77\n");
  cr_assert_eq(find(&run, TW_EV_PROC_STEAL)->args[3], TW_PROC_SYSCALL_ABANDONED);
  tt_run_fini(&run);
}

Test(order, abandoned_status_of_a_known_system_call_is_told_where_the_proc_is) {
  struct tt_run run = fits(GO22 RUNNING "GoSyscallBegin dt=1 p_seq=1 stack=0\n"
                                        "EventBatch gen=1 m=1 time=9\n"
                                        "ProcStatus dt=1 p=0 pstatus=4\n"
                                        "ProcSteal dt=1 p=0 p_seq=1 m=0\n");
  const struct to_event *first = find(&run, TW_EV_PROC_STATUS);
  const struct to_event *second = NULL;
  for (const struct to_event *ev = first + 1; ev < run.events + run.count; ev++)
    if (ev->type == TW_EV_PROC_STATUS) second = ev;
  cr_assert_not_null(second);
  cr_assert(second->m == 0 && second->p == 0 && second->g == 1);
  cr_assert(second->args[1] == TW_PROC_SYSCALL && second->args[2] == TO_PROC_RUNNING);
  tt_run_fini(&run);
}

/* Goroutines */

/* C1, C3 */
Test(order, go_start_waits_for_the_creation_on_another_thread) {
  struct tt_run run = fits(GO22 RUNNING "GoCreate dt=50 new_g=5 new_stack=1 stack=2\n"
                                        "EventBatch gen=1 m=1 time=1\n"
                                        "ProcStatus dt=1 p=1 pstatus=1\n"
                                        "GoStart dt=1 g=5 g_seq=1\n");
  tt_expect_order(&run, "m=0 GoCreate", "m=1 GoStart");
  tt_run_fini(&run);
}

Test(order, go_start_needs_a_proc_and_no_goroutine) {
  refused(GO22 RUNNING "GoCreate dt=1 new_g=5 new_stack=0 stack=0\n"
                       "GoStart dt=1 g=5 g_seq=1\n",
          "GoStart on a thread that has a goroutine");
  refused(GO22 RUNNING "GoCreate dt=1 new_g=5 new_stack=0 stack=0\n"
                       "EventBatch gen=1 m=1 time=9\n"
                       "GoStart dt=1 g=5 g_seq=1\n",
          "GoStart on a thread without a proc");
}

Test(order, a_goroutine_is_created_once) {
  refused(GO22 RUNNING "GoCreate dt=1 new_g=1 new_stack=0 stack=0\n",
          "GoCreate of goroutine 1, which exists");
  refused(GO22 RUNNING "GoStop dt=1 reason_string=0 stack=0\nGoCreateSyscall dt=1 new_g=1\n",
          "goroutine 1, which exists");
}

/* C4 */
Test(order, an_ended_goroutines_id_may_come_again) {
  struct tt_run run = fits(GO22 RUNNING "GoDestroy dt=1\n"
                                        "GoCreate dt=1 new_g=1 new_stack=0 stack=0\n"
                                        "GoStart dt=1 g=1 g_seq=1\n");
  tt_expect_order(&run, "m=0 GoDestroy", "m=0 GoCreate", "m=0 GoStart");
  tt_run_fini(&run);
}

Test(order, a_goroutine_bound_to_two_threads_and_ended_on_one_is_gone_on_the_other) {
  refused(GO22 RUNNING "EventBatch gen=1 m=1 time=9\n"
                       "ProcStatus dt=1 p=1 pstatus=1\n"
                       "GoStatus dt=1 g=1 m=0 gstatus=2\n"
                       "GoDestroy dt=20\n"
                       "EventBatch gen=1 m=0 time=20\n"
                       "GoDestroy dt=20\n",
          "GoDestroy of goroutine 1, which does not exist");
}

/* C6, C7 */
Test(order, stop_and_block_make_runnable_and_waiting) {
  struct tt_run run = fits(GO22 RUNNING "GoStop dt=1 reason_string=1 stack=1\n"
                                        "GoStart dt=1 g=1 g_seq=1\n"
                                        "GoBlock dt=1 reason_string=2 stack=1\n"
                                        "GoUnblock dt=1 g=1 g_seq=2 stack=0\n"
                                        "GoStart dt=1 g=1 g_seq=3\n"
                                        "GoDestroy dt=1\n");
  cr_assert_eq(run.count, 10);
  tt_run_fini(&run);
}

Test(order, leaving_needs_a_running_goroutine) {
  refused(GO22 RUNNING
          "GoSyscallBegin dt=1 p_seq=1 stack=0\nGoBlock dt=1 reason_string=0 stack=0\n",
          "GoBlock of goroutine 1, which is not running");
  refused(GO22 RUNNING "GoStop dt=1 reason_string=0 stack=0\nGoDestroy dt=1\n",
          "GoDestroy on a thread without a goroutine");
}

/* C8 */
Test(order, unblock_waits_for_the_block_and_needs_no_context) {
  struct tt_run run = fits(GO22 RUNNING "GoBlock dt=50 reason_string=0 stack=0\n"
                                        "EventBatch gen=1 m=18446744073709551615 time=1\n"
                                        "GoUnblock dt=1 g=1 g_seq=1 stack=0\n");
  tt_expect_order(&run, "m=0 GoBlock", "m=-1 GoUnblock");
  tt_run_fini(&run);
}

Test(order, an_unblock_of_nobody_is_refused) {
  refused(GO22 RUNNING "GoUnblock dt=1 g=9 g_seq=1 stack=0\n", "no thread can go on: 1 wait");
}

/* C14 */
Test(order, a_switch_becomes_unblock_block_and_start) {
  struct tt_run run =
      fits("Trace Go1.23\n" RUNNING "GoCreateBlocked dt=1 new_g=2 new_stack=0 stack=0\n"
           "GoSwitch dt=1 g=2 g_seq=1\n");
  const struct to_event *ev = find(&run, TW_EV_GO_SWITCH);
  cr_assert(ev[0].g == 1 && ev[0].args[0] == 2);
  cr_assert(ev[1].type == TW_EV_GO_BLOCK && ev[1].g == 1 && ev[1].args[0] == 0 &&
            ev[1].args[1] == 0);
  cr_assert(ev[2].type == TW_EV_GO_START && ev[2].g == TO_NONE && ev[2].args[0] == 2 &&
            ev[2].args[1] == 1);
  cr_assert(ev[1].time == ev[0].time + 1 && ev[2].time == ev[1].time + 1);
  tt_run_fini(&run);
}

Test(order, a_switch_and_destroy_ends_the_goroutine) {
  struct tt_run run =
      fits("Trace Go1.23\n" RUNNING "GoCreateBlocked dt=1 new_g=2 new_stack=0 stack=0\n"
           "GoSwitchDestroy dt=1 g=2 g_seq=1\n"
           "GoCreate dt=1 new_g=1 new_stack=0 stack=0\n");
  tt_expect_order(&run, "m=0 GoSwitchDestroy", "m=0 GoDestroy", "m=0 GoStart", "m=0 GoCreate");
  tt_run_fini(&run);
}

/* C14, C15 */
Test(order, a_switch_waits_for_its_target) {
  struct tt_run run =
      fits("Trace Go1.23\n" RUNNING "GoCreateBlocked dt=1 new_g=3 new_stack=0 stack=0\n"
           "GoSwitch dt=1 g=3 g_seq=2\n" RUNNING_TOO "GoSwitch dt=50 g=3 g_seq=1\n"
           "GoSwitch dt=1 g=2 g_seq=1\n");
  tt_expect_order(&run, "m=1 GoSwitch", "m=1 GoSwitch", "m=0 GoSwitch");
  tt_run_fini(&run);
}

Test(order, a_switch_on_an_idle_thread_is_refused_even_too_early) {
  refused("Trace Go1.23\nEventBatch gen=1 m=0 time=0\nProcStatus dt=1 p=0 pstatus=1\nGoSwitch dt=1 "
          "g=3 g_seq=1\n",
          "GoSwitch on a thread without a goroutine");
}

/* C9, C10 */
Test(order, a_system_call_ends_where_it_began) {
  struct tt_run run = fits(GO22 RUNNING "GoSyscallBegin dt=1 p_seq=1 stack=1\n"
                                        "GoSyscallEnd dt=1\n"
                                        "GoSyscallBegin dt=1 p_seq=2 stack=1\n"
                                        "GoSyscallEnd dt=1\n");
  cr_assert_eq(run.count, 8);
  tt_run_fini(&run);
  refused(GO22 RUNNING "GoSyscallEnd dt=1\n",
          "GoSyscallEnd of goroutine 1, which is not in a system call");
  refused(GO22 RUNNING "GoSyscallBegin dt=1 p_seq=2 stack=0\n",
          "GoSyscallBegin: proc 0 goes from 0");
}

/* C2, C5 */
Test(order, a_c_thread_gives_its_proc_up_when_it_leaves) {
  struct tt_run run = fits(GO22 "EventBatch gen=1 m=0 time=0\n"
                                "GoCreateSyscall dt=1 new_g=4\n"
                                "ProcStatus dt=1 p=0 pstatus=2\n"
                                "ProcStart dt=1 p=0 p_seq=1\n"
                                "GoSyscallEndBlocked dt=1\n"
                                "GoStart dt=1 g=4 g_seq=1\n"
                                "GoSyscallBegin dt=1 p_seq=2 stack=0\n"
                                "GoDestroySyscall dt=1\n");
  const struct to_event *ev = find(&run, TW_EV_PROC_STEAL);
  cr_assert(ev->args[0] == 0 && ev->args[3] == TW_PROC_SYSCALL && ev->p == 0 && ev->g == 4);
  cr_assert_eq(ev[1].type, TW_EV_GO_DESTROY_SYSCALL);
  tt_run_fini(&run);
  refused(GO22 RUNNING "GoDestroySyscall dt=1\n", "goroutine 1, which is not in a system call");
  refused(GO22 RUNNING "GoCreateSyscall dt=1 new_g=4\n",
          "GoCreateSyscall on a thread that has a goroutine");
}

Test(order, a_status_tells_of_a_system_call_on_a_sleeping_thread) {
  struct tt_run run = fits(GO22 RUNNING "GoStatus dt=1 g=7 m=9 gstatus=3\n"
                                        "EventBatch gen=1 m=9 time=20\n"
                                        "GoSyscallEndBlocked dt=1\n");
  const struct to_event *ev = find(&run, TW_EV_GO_STATUS) + 1;
  cr_assert(ev->type == TW_EV_GO_STATUS && ev->m == 9 && ev->g == 1);
  cr_assert_eq(ev->args[2], (uint64_t)TO_GO_UNDETERMINED << 32 | TW_GO_SYSCALL);
  cr_assert_eq(find(&run, TW_EV_GO_SYSCALL_END_BLOCKED)->g, 7);
  tt_run_fini(&run);
  refused(GO22 RUNNING "GoStatus dt=1 g=7 m=18446744073709551615 gstatus=3\n", "without a thread");
  refused(GO22 RUNNING RUNNING_TOO "GoStatus dt=20 g=7 m=0 gstatus=3\n",
          "thread 0, which has goroutine 1");
}

/* C12, C13 */
Test(order, statuses_must_agree_with_what_is_known) {
  refused(GO22 RUNNING "GoStatus dt=1 g=1 m=0 gstatus=4\n",
          "goroutine 1 is stated to have status 4, but has 2");
  refused(GO22 RUNNING "GoStatus dt=1 g=3 m=0 gstatus=5\n", "no status 5");
  refused(GO22 RUNNING "EventBatch gen=2 m=0 time=20\n"
                       "ProcStatus dt=1 p=0 pstatus=1\n"
                       "GoStatus dt=1 g=8 m=0 gstatus=2\n",
          "goroutine 8, which nothing created");
}

/* C13 */
Test(order, a_status_with_a_stack_is_checked_like_one_without_and_keeps_its_stack) {
  struct tt_run run = fits("Trace Go1.23\n" RUNNING
                           "GoStatusStack dt=1 g=7 m=18446744073709551615 gstatus=4 stack=6\n"
                           "GoUnblock dt=1 g=7 g_seq=1 stack=0\n"
                           "EventBatch gen=2 m=0 time=50\n"
                           "ProcStatus dt=1 p=0 pstatus=1\n"
                           "GoStatus dt=1 g=1 m=0 gstatus=2\n"
                           "GoStatusStack dt=1 g=7 m=18446744073709551615 gstatus=1 stack=8\n");
  const struct to_event *first = find(&run, TW_EV_GO_STATUS_STACK), *second = NULL;
  for (const struct to_event *ev = first + 1; ev < run.events + run.count; ev++)
    if (ev->type == TW_EV_GO_STATUS_STACK) second = ev;
  cr_assert_not_null(second);
  cr_assert(first->args[0] == 7 && first->args[3] == 6);
  cr_assert(second->args[0] == 7 && second->args[3] == 8);
  tt_run_fini(&run);
  refused("Trace Go1.23\n" RUNNING "GoStatusStack dt=1 g=1 m=0 gstatus=4 stack=6\n",
          "goroutine 1 is stated to have status 4, but has 2");
  refused("Trace Go1.23\n" RUNNING "GoStatusStack dt=1 g=3 m=0 gstatus=5 stack=6\n", "no status 5");
  refused("Trace Go1.23\n" RUNNING "EventBatch gen=2 m=0 time=20\n"
          "ProcStatus dt=1 p=0 pstatus=1\n"
          "GoStatusStack dt=1 g=8 m=0 gstatus=2 stack=6\n",
          "goroutine 8, which nothing created");
}

Test(order, state_lives_across_generations_and_sequences_start_anew) {
  struct tt_run run = fits(GO22 RUNNING "GoStop dt=1 reason_string=0 stack=0\n"
                                        "EventBatch gen=2 m=0 time=20\n"
                                        "ProcStatus dt=1 p=0 pstatus=1\n"
                                        "GoStatus dt=1 g=1 m=18446744073709551615 gstatus=1\n"
                                        "GoStart dt=1 g=1 g_seq=1\n");
  cr_assert_eq(run.generations, 2);
  tt_expect_order(&run, "m=0 GoStop", "m=-1 Sync", "m=0 GoStatus", "m=0 GoStart", "m=-1 Sync");
  cr_assert_eq(run.events[run.count - 1].args[0], 3, "the last Sync is the third");
  tt_run_fini(&run);
}

/* The collector and ranges */

/* D2 */
Test(order, gc_events_follow_their_numbers_over_threads) {
  struct tt_run run =
      fits(GO22 RUNNING "GCBegin dt=1 gc_seq=4 stack=0\n"
                        "GCBegin dt=1 gc_seq=6 stack=0\n" RUNNING_TOO "GCEnd dt=30 gc_seq=5\n");
  tt_expect_order(&run, "m=0 GCBegin", "m=1 GCEnd", "m=0 GCBegin");
  tt_run_fini(&run);
}

/* D2 */
Test(order, gc_states_are_checked) {
  refused(GO22 RUNNING "GCBegin dt=1 gc_seq=1 stack=0\nGCBegin dt=1 gc_seq=2 stack=0\n",
          "GCBegin while a GC runs");
  refused(GO22 RUNNING "GCEnd dt=1 gc_seq=1\n", "GCEnd while no GC is known to run");
  refused(GO22 RUNNING "GCActive dt=1 gc_seq=1\nGCActive dt=1 gc_seq=2\n",
          "GCActive is not the first GC event");
  struct tt_run run = fits(GO22 RUNNING "GCActive dt=1 gc_seq=1\n"
                                        "EventBatch gen=2 m=0 time=20\n"
                                        "ProcStatus dt=1 p=0 pstatus=1\n"
                                        "GoStatus dt=1 g=1 m=0 gstatus=2\n"
                                        "GCActive dt=1 gc_seq=2\n"
                                        "GCEnd dt=1 gc_seq=3\n");
  tt_run_fini(&run);
}

Test(order, ranges_open_and_close_once) {
  struct tt_run run = fits(GO22 RUNNING "GCSweepBegin dt=1 stack=0\n"
                                        "GCSweepEnd dt=1 swept_value=10 reclaimed_value=20\n"
                                        "GCMarkAssistBegin dt=1 stack=0\n"
                                        "GCMarkAssistEnd dt=1\n"
                                        "STWBegin dt=1 kind_string=3 stack=0\n"
                                        "STWEnd dt=1\n");
  cr_assert_eq(find(&run, TW_EV_STW_END)->args[0], 3, "the end knows the kind of the begin");
  const struct to_event *swept = find(&run, TW_EV_GC_SWEEP_END);
  cr_assert(swept->args[0] == 10 && swept->args[1] == 20, "bytes swept and reclaimed");
  tt_run_fini(&run);
  refused(GO22 RUNNING "GCSweepBegin dt=1 stack=0\nGCSweepBegin dt=1 stack=0\n",
          "GCSweepBegin: the range is open already");
  refused(GO22 RUNNING "GCSweepEnd dt=1 swept_value=0 reclaimed_value=0\n",
          "GCSweepEnd: no such range is open");
  refused(GO22 RUNNING "STWBegin dt=1 kind_string=3 stack=0\nSTWBegin dt=1 kind_string=3 stack=0\n",
          "open already");
  refused(GO22 RUNNING "GCMarkAssistEnd dt=1\n", "GCMarkAssistEnd: no such range is open");
}

/* D1 */
Test(order, of_several_stops_the_first_in_the_list_ends_and_the_last_takes_its_place) {
  struct tt_run run = fits(GO22 RUNNING "STWBegin dt=1 kind_string=1 stack=0\n"
                                        "STWBegin dt=1 kind_string=2 stack=0\n"
                                        "STWBegin dt=1 kind_string=3 stack=0\n"
                                        "STWEnd dt=1\nSTWEnd dt=1\nSTWEnd dt=1\n");
  const struct to_event *ev = find(&run, TW_EV_STW_END);
  cr_assert(ev[0].args[0] == 1 && ev[1].args[0] == 3 && ev[2].args[0] == 2);
  tt_run_fini(&run);
}

/* D3, D4 */
Test(order, active_ranges_are_news_in_the_first_generation_only) {
  struct tt_run run = fits(GO22 RUNNING "GCMarkAssistActive dt=1 g=1\n"
                                        "GCSweepActive dt=1 p=0\n"
                                        "EventBatch gen=2 m=0 time=20\n"
                                        "ProcStatus dt=1 p=0 pstatus=1\n"
                                        "GoStatus dt=1 g=1 m=0 gstatus=2\n"
                                        "GCMarkAssistActive dt=1 g=1\n"
                                        "GCSweepActive dt=1 p=0\n"
                                        "GCMarkAssistEnd dt=1\n");
  tt_run_fini(&run);
  refused(GO22 RUNNING "GCMarkAssistActive dt=1 g=1\nGCMarkAssistActive dt=1 g=1\n",
          "open already");
  refused(GO22 RUNNING "GCMarkAssistActive dt=1 g=5\n", "goroutine 5, which does not exist");
  refused(GO22 RUNNING "GCSweepActive dt=1 p=5\n", "proc 5, which does not exist");
  refused(GO22 RUNNING "EventBatch gen=2 m=0 time=20\n"
                       "ProcStatus dt=1 p=0 pstatus=1\n"
                       "GCSweepActive dt=1 p=0\n",
          "no such range is open");
}

/* D4 */
Test(order, an_assist_under_way_may_be_of_a_goroutine_that_waits) {
  struct tt_run run = fits(GO22 RUNNING "GoStatus dt=1 g=2 m=18446744073709551615 gstatus=4\n"
                                        "GCMarkAssistActive dt=1 g=2\n"
                                        "GoUnblock dt=1 g=2 g_seq=1 stack=0\n"
                                        "GoStop dt=1 reason_string=0 stack=0\n"
                                        "GoStart dt=1 g=2 g_seq=2\n"
                                        "GCMarkAssistEnd dt=1\n");
  cr_assert_eq(find(&run, TW_EV_GC_MARK_ASSIST_ACTIVE)->g, 1, "the one that says so runs");
  cr_assert_eq(find(&run, TW_EV_GC_MARK_ASSIST_END)->g, 2);
  tt_run_fini(&run);
}

/* User annotations: tasks, regions, logs */

/* D7 */
Test(order, a_task_carries_its_parent_and_name_into_the_next_generation) {
  struct tt_run run =
      fits(GO22 RUNNING "UserTaskBegin dt=1 task=5 parent_task=0 name_string=9 stack=0\n"
                        "EventBatch gen=2 m=0 time=20\n"
                        "ProcStatus dt=1 p=0 pstatus=1\n"
                        "GoStatus dt=1 g=1 m=0 gstatus=2\n"
                        "UserTaskEnd dt=1 task=5 stack=0\n"
                        "UserTaskEnd dt=1 task=5 stack=0\n");
  cr_assert_eq(find(&run, TW_EV_USER_TASK_BEGIN)->args[1], TO_NO_TASK);
  const struct to_event *end = find(&run, TW_EV_USER_TASK_END);
  cr_assert(end[0].args[2] == TO_NO_TASK && end[0].args[3] == 1, "the first end knows the name");
  cr_assert(end[1].args[2] == TO_NO_TASK && end[1].args[3] == 0, "a second end is accepted");
  tt_run_fini(&run);
  refused(GO22 RUNNING "UserTaskBegin dt=1 task=5 parent_task=0 name_string=1 stack=0\n"
                       "UserTaskBegin dt=1 task=5 parent_task=0 name_string=1 stack=0\n",
          "task 5 begins twice");
}

/* D7 */
Test(order, a_tasks_id_may_come_again_and_its_end_without_a_begin) {
  struct tt_run run =
      fits(GO22 RUNNING "UserTaskEnd dt=1 task=5 stack=0\n"
                        "UserTaskBegin dt=1 task=5 parent_task=4 name_string=9 stack=0\n"
                        "UserTaskEnd dt=1 task=5 stack=0\n"
                        "UserTaskBegin dt=1 task=5 parent_task=0 name_string=8 stack=0\n");
  const struct to_event *unbegun = find(&run, TW_EV_USER_TASK_END);
  cr_assert(unbegun->args[2] == TO_NO_TASK && unbegun->args[3] == 0, "it has no name");
  cr_assert_eq(unbegun[1].args[1], 4);
  cr_assert(unbegun[2].args[2] == 4 && unbegun[2].args[3] != 0, "the end knows parent and name");
  cr_assert_eq(unbegun[3].args[2], 8);
  tt_run_fini(&run);
}

/* D8, I18 */
Test(order, regions_close_innermost_first_by_name_across_generations) {
  struct tt_run run = fits(GO22 RUNNING "UserRegionEnd dt=1 task=1 name_string=1 stack=0\n"
                                        "UserRegionBegin dt=1 task=1 name_string=1 stack=0\n"
                                        "EventBatch gen=2 m=0 time=20\n"
                                        "ProcStatus dt=1 p=0 pstatus=1\n"
                                        "GoStatus dt=1 g=1 m=0 gstatus=2\n"
                                        "UserRegionEnd dt=1 task=1 name_string=1 stack=0\n");
  cr_assert_eq(run.lone_region_ends, 1, "the first, whose begin no trace has");
  tt_run_fini(&run);
  refused(GO22 RUNNING "UserRegionBegin dt=1 task=1 name_string=1 stack=0\n"
                       "UserRegionEnd dt=1 task=1 name_string=2 stack=0\n",
          "goroutine 1 ends region \"s2\" of task 1, but its innermost is \"s1\" of task 1");
  refused(GO22 RUNNING "UserRegionBegin dt=1 task=1 name_string=1 stack=0\n"
                       "UserRegionEnd dt=1 task=2 name_string=1 stack=0\n",
          "ends region \"s1\" of task 2, but its innermost is \"s1\" of task 1");
}

#define ALIKE "a name of a region that begins as the other one does, "

Test(order, long_names_that_begin_alike_are_shown_where_they_differ) {
  refused(GO22 RUNNING "UserRegionBegin dt=1 task=1 name_string=1 stack=0\n"
                       "UserRegionEnd dt=1 task=1 name_string=2 stack=0\n"
                       "EventBatch gen=1 m=18446744073709551615 time=0\n"
                       "Strings\n"
                       "String id=1\n\tdata=\"" ALIKE "here\"\n"
                       "String id=2\n\tdata=\"" ALIKE "there\"\n",
          "\"...r one does, there\" of task 1, but its innermost is \"...r one does, here\"");
}

/* A dispatcher may end regions of equal names in another order. */
Test(order, a_reader_may_go_on_past_regions_that_are_not_nested) {
  struct tt_run run =
      tt_order_text_by(GO22 RUNNING "UserRegionBegin dt=1 task=1 name_string=1 stack=0\n"
                                    "UserRegionBegin dt=1 task=2 name_string=1 stack=0\n"
                                    "UserRegionEnd dt=1 task=1 name_string=1 stack=0\n"
                                    "UserRegionEnd dt=1 task=2 name_string=1 stack=0\n"
                                    "UserRegionBegin dt=1 task=3 name_string=2 stack=0\n"
                                    "UserRegionEnd dt=1 task=3 name_string=2 stack=0\n"
                                    "EventBatch gen=2 m=0 time=20\n"
                                    "ProcStatus dt=1 p=0 pstatus=1\n"
                                    "GoStatus dt=1 g=1 m=0 gstatus=2\n",
                       TO_READER_PAST_ANNOTATIONS);
  const struct to_event *begin = find(&run, TW_EV_USER_REGION_BEGIN);
  struct to_user_event user[3];

  TT_OK(run);
  cr_assert_eq(run.generations, 2);
  cr_assert_eq(run.misannotated.rc, TB_BROKEN, "the verdict is Go's");
  cr_assert_not_null(
      strstr(run.misannotated.text, "of task 1, but its innermost is \"s1\" of task 2"), "said: %s",
      run.misannotated.text);
  cr_assert(run.misannotated.gen == 1 && run.misannotated.offset != TB_NO_OFFSET);
  to_event_user(&begin[2], &user[0]);
  to_event_user(&begin[3], &user[1]);
  to_event_user(&begin[5], &user[2]);
  cr_assert_eq(user[0].nesting, TO_MISNESTED);
  cr_assert_eq(user[1].nesting, TO_NESTING_LOST);
  cr_assert_eq(user[2].nesting, TO_NESTED);
  cr_assert_eq(run.lone_region_ends, 0, "the begin of the second end was seen");
  tt_run_fini(&run);
}

Test(order, a_reader_may_go_on_past_a_task_that_begins_twice) {
  struct tt_run run = tt_order_text_by(
      GO22 RUNNING "UserTaskBegin dt=1 task=5 parent_task=0 name_string=1 stack=0\n"
                   "UserTaskBegin dt=1 task=5 parent_task=4 name_string=2 stack=0\n"
                   "UserTaskEnd dt=1 task=5 stack=0\n",
      TO_READER_PAST_ANNOTATIONS);
  TT_OK(run);
  cr_assert_str_eq(run.misannotated.text, "task 5 begins twice");
  cr_assert_eq(find(&run, TW_EV_USER_TASK_END)->args[2], 4, "it is the second one");
  tt_run_fini(&run);
}

/* B1, D5, D6, D9 */
Test(order, notes_need_their_context) {
  static const char *const notes[] = {
    "UserLog dt=1 task=1 key_string=1 value_string=2 stack=3\n",
    "GoLabel dt=1 label_string=1\n",
    "ProcsChange dt=1 procs_value=4 stack=1\n",
  };
  for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
    char text[400];
    snprintf(text, sizeof text, GO22 RUNNING "%s", notes[i]);
    struct tt_run run = fits(text);
    tt_run_fini(&run);
    snprintf(text, sizeof text,
             GO22 "EventBatch gen=1 m=0 time=0\nProcStatus dt=1 p=0 pstatus=1\n%s", notes[i]);
    refused(text, "on a thread without a goroutine");
  }
  refused(GO22 "EventBatch gen=1 m=0 time=0\nHeapAlloc dt=1 heapalloc_value=1\n",
          "HeapAlloc on a thread without a proc");
  struct tt_run run =
      fits("Trace Go1.23\nEventBatch gen=1 m=0 time=0\nHeapObjectAlloc dt=1 id=1 type=2\n");
  tt_run_fini(&run);
  refused("Trace Go1.23\nEventBatch gen=1 m=18446744073709551615 time=0\nSpanFree dt=1 id=1\n",
          "SpanFree needs a thread");
}

Test(order, clocks_have_no_place_among_timed_events) {
  refused("Trace Go1.25\nEventBatch gen=1 m=0 time=0\nProcStatus dt=1 p=0 pstatus=1\n"
          "ClockSnapshot dt=1 mono=1 sec=1 nsec=1\n",
          "ClockSnapshot has no place here");
}

/* A6 */
Test(order, times_rise_strictly_whatever_the_clocks_say) {
  struct tt_run run = fits(GO22 RUNNING "GoCreate dt=0 new_g=5 new_stack=0 stack=0\n"
                                        "GoCreate dt=0 new_g=6 new_stack=0 stack=0\n" RUNNING_TOO
                                        "GoCreate dt=0 new_g=7 new_stack=0 stack=0\n");
  for (size_t i = 1; i < run.count; i++) cr_assert_gt(run.events[i].time, run.events[i - 1].time);
  tt_run_fini(&run);
}

/* A6: a tick is 2 ns in the first generation and 4 ns in the second. */
Test(order, times_are_ticks_of_the_generations_frequency) {
  struct tt_run run = fits(GO22 "EventBatch gen=1 m=18446744073709551615 time=0\n"
                                "Frequency freq=500000000\n"
                                "EventBatch gen=1 m=0 time=100\n"
                                "ProcStatus dt=10 p=0 pstatus=1\n"
                                "HeapAlloc dt=50 heapalloc_value=1\n"
                                "EventBatch gen=2 m=18446744073709551615 time=100\n"
                                "Frequency freq=250000000\n"
                                "EventBatch gen=2 m=0 time=100\n"
                                "ProcStatus dt=10 p=0 pstatus=1\n"
                                "HeapAlloc dt=50 heapalloc_value=2\n");
  to_ns times[2] = { 0 };
  size_t n = 0;

  for (size_t i = 0; i < run.count; i++)
    if (run.events[i].type == TW_EV_HEAP_ALLOC && n < 2) times[n++] = run.events[i].time;
  cr_assert_eq(n, 2);
  cr_assert(times[0] == 320 && times[1] == 640, "%ld %ld", (long)times[0], (long)times[1]);
  tt_run_fini(&run);
}

Test(order, a_fault_in_a_threads_next_event_swallows_the_one_before) {
  struct tt_run run = tt_order_text(GO22 RUNNING "Strings\n");
  TT_BROKEN(run, "not an event with a time (event type 4)");
  tt_expect_order(&run, "m=-1 Sync", "m=0 ProcStatus");
  cr_assert_eq(run.count, 2);
  tt_run_fini(&run);
}

/* A5 */
Test(order, samples_come_in_their_time_between_events) {
  struct tt_run run = fits(GO22 RUNNING "GoStop dt=50 reason_string=0 stack=0\n"
                                        "EventBatch gen=1 m=18446744073709551615 time=0\n"
                                        "CPUSamples\n"
                                        "CPUSample time=60 m=1 p=0 g=0 stack=1\n"
                                        "CPUSample time=10 m=0 p=0 g=1 stack=1\n");
  tt_expect_order(&run, "m=0 GoStatus", "m=0 CPUSample", "m=0 GoStop", "m=1 CPUSample");
  cr_assert_eq(run.events[run.count - 2].g, TO_NONE);
  tt_run_fini(&run);
}

Test(order, a_sample_may_name_what_nothing_else_names) {
  struct tt_run run = fits(GO22 RUNNING "EventBatch gen=1 m=18446744073709551615 time=0\n"
                                        "CPUSamples\n"
                                        "CPUSample time=60 m=71 p=72 g=73 stack=1\n");
  const struct to_event *sample = find(&run, TW_EV_CPU_SAMPLE);

  cr_assert(sample->m == 71 && sample->p == 72 && sample->g == 73);
  tt_run_fini(&run);
}

Test(order, a_fault_names_generation_thread_and_byte) {
  struct tt_run run = tt_order_text(GO22 RUNNING "GoSyscallEnd dt=1\n");
  cr_assert_eq(run.diag.gen, 1);
  cr_assert_eq(run.diag.thread, 0);
  cr_assert_eq(run.diag.offset, 16 + 5 + 4 + 5, "header, batch header, two events");
  tt_run_fini(&run);
}

/* In Go, the product of zero ticks and an infinite length is NaN, which becomes the smallest time. */
Test(order, a_frequency_of_zero_orders_as_in_go) {
  struct tt_run run = fits(GO22 "EventBatch gen=1 m=18446744073709551615 time=0\n"
                                "Frequency freq=0\n"
                                "EventBatch gen=1 m=0 time=0\n"
                                "ProcStatus dt=1 p=0 pstatus=2\n"
                                "EventBatch gen=1 m=18446744073709551615 time=0\n"
                                "GoStatus dt=0 g=1 m=1 gstatus=3\n"
                                "GoStatus dt=1 g=2 m=2 gstatus=3\n");
  for (size_t i = 1; i < run.count; i++) cr_assert_gt(run.events[i].time, run.events[i - 1].time);
  tt_expect_order(&run, "m=0 ProcStatus", "m=1 GoStatus", "m=2 GoStatus");
  tt_run_fini(&run);
}
