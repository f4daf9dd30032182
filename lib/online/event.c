/* SPDX-License-Identifier: Apache-2.0 */
#include "online/event.h"

const char *to_go_state_name(enum to_go_state state) {
  switch (state) {
  case TO_GO_UNDETERMINED: return "Undetermined";
  case TO_GO_NOT_EXIST: return "NotExist";
  case TO_GO_RUNNABLE: return "Runnable";
  case TO_GO_RUNNING: return "Running";
  case TO_GO_WAITING: return "Waiting";
  case TO_GO_SYSCALL: return "Syscall";
  }
  return "Bad";
}

const char *to_proc_state_name(enum to_proc_state state) {
  switch (state) {
  case TO_PROC_UNDETERMINED: return "Undetermined";
  case TO_PROC_NOT_EXIST: return "NotExist";
  case TO_PROC_RUNNING: return "Running";
  case TO_PROC_IDLE: return "Idle";
  }
  return "Bad";
}
