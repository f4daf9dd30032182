/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the wire's status numbers to states; private to the library. Inline, because a call would spill the
 * orderer's registers. */
#ifndef TO_EVENT_STATUS_H
#define TO_EVENT_STATUS_H

#include "online/event/event.h"

/* Converts enum tw_go_status to enum to_go_state; unknown numbers become UNDETERMINED. */
static inline uint8_t to__go_state_of(uint64_t status) {
  static const uint8_t states[TW_GO_STATUSES] = {
    [TW_GO_RUNNABLE] = TO_GO_RUNNABLE,
    [TW_GO_RUNNING] = TO_GO_RUNNING,
    [TW_GO_SYSCALL] = TO_GO_SYSCALL,
    [TW_GO_WAITING] = TO_GO_WAITING,
  };
  return status < TW_GO_STATUSES ? states[status] : TO_GO_UNDETERMINED;
}

/* Converts enum tw_proc_status to enum to_proc_state, likewise. */
static inline uint8_t to__proc_state_of(uint64_t status) {
  static const uint8_t states[TW_PROC_STATUSES] = {
    [TW_PROC_RUNNING] = TO_PROC_RUNNING,
    [TW_PROC_IDLE] = TO_PROC_IDLE,
    [TW_PROC_SYSCALL] = TO_PROC_RUNNING,
    [TW_PROC_SYSCALL_ABANDONED] = TO_PROC_IDLE,
  };
  return status < TW_PROC_STATUSES ? states[status] : TO_PROC_UNDETERMINED;
}

#endif
