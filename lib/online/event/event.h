/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered event, as delivered by the orderer: one fixed-size record.
 *
 * type and args are the wire's (wire/events.def names them; args[0] is the first argument after dt),
 * except where the orderer knows more:
 *   TW_EV_PROC_STATUS     args[2] = the proc's state before (enum to_proc_state)
 *   TW_EV_PROC_STEAL      args[3] = enum tw_proc_status the proc was stolen out of
 *   TW_EV_GO_STATUS[_STACK] args[2] = state before (enum to_go_state) << 32 | enum tw_go_status
 *   TW_EV_STW_END         args[0] = string id of the kind, copied from the begin
 *   TW_EV_USER_TASK_BEGIN args[1] = parent task, TO_NO_TASK where the wire says 0
 *   TW_EV_USER_TASK_END   args[2] = parent task, args[3] = id for to_generation_extra_string()
 *   TW_EV_CPU_SAMPLE      args[0] = stack id; m, p, g are the sample's own
 *   TW_EV_SYNC            a generation begins, or the trace ends: args[0] = N, counted from 1
 * GoSwitch and GoSwitchDestroy arrive as three events (the switch = unblock of the target, then
 * GoBlock or GoDestroy, then GoStart), GoDestroySyscall of a thread with a proc as two (ProcSteal first).
 *
 * m, p, g are the context in which the event happened, before its effect; TO_NONE where absent.
 *
 * slot is the orderer's number of the goroutine in args[0], valid in GoCreate, GoCreateBlocked, GoCreateSyscall,
 * GoStart, GoUnblock, GoSwitch, GoSwitchDestroy and GoStatus[Stack] only. Slots are dense, so they can index arrays.
 * A slot is reused after its goroutine has ended and no thread is bound to it; 0 is goroutine -1, which only a
 * made-up trace has.
 */
#ifndef TO_EVENT_EVENT_H
#define TO_EVENT_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/result.h"
#include "wire/spec.h"

typedef int64_t to_ns; /* nanoseconds on the trace's own clock */

#define TO_NONE    INT64_C(-1)
#define TO_NO_TASK UINT64_MAX

struct to_event {
  to_ns time; /* strictly rising over the whole trace */
  int64_t m, p, g;
  uint64_t args[4];
  uint8_t type;  /* enum tw_event */
  uint32_t slot; /* see above */
};

/* Reported states; their numbers and names are frozen (requirement I21). The wire's status numbers
 * differ: see enum tw_go_status and enum tw_proc_status. */
enum to_go_state {
  TO_GO_UNDETERMINED,
  TO_GO_NOT_EXIST,
  TO_GO_RUNNABLE,
  TO_GO_RUNNING,
  TO_GO_WAITING,
  TO_GO_SYSCALL,
};
enum to_proc_state { TO_PROC_UNDETERMINED, TO_PROC_NOT_EXIST, TO_PROC_RUNNING, TO_PROC_IDLE };

const char *to_go_state_name(enum to_go_state state); /* "Running" */
const char *to_proc_state_name(enum to_proc_state state);

/* Writes the types of args, including those added by the orderer, and returns how many there are.
 * The fourth of USER_TASK_END counts as a string although it is an extra string. */
unsigned to_event_args(uint8_t type, enum tw_arg_type out[4]);

struct to_generation;

/* Receives ordered events in slices of 1 to 256; events and gen are lent for the call. gen is NULL only
 * for the last Sync and for the Sync before an error. A slice never spans two generations. A result
 * other than TB_OK stops the reader, which returns it. */
struct to_event_sink {
  void *self;
  tb_rc (*events)(void *self, const struct to_generation *gen, const struct to_event *events,
                  size_t n);
};

#endif
