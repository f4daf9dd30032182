/* SPDX-License-Identifier: Apache-2.0 */
#include "online/event/event.h"

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

unsigned to_event_args(uint8_t type, enum tw_arg_type out[4]) {
  const struct tw_spec *spec = tw_spec(type);
  unsigned n = type == TW_EV_CPU_SAMPLE ? 0 : spec->nargs;

  for (unsigned i = 0; i < n; i++) out[i] = spec->args[i].type;
  switch (type) {
  case TW_EV_SYNC: out[n++] = TW_ARG_VALUE; break;
  case TW_EV_CPU_SAMPLE: out[n++] = TW_ARG_STACK; break;
  case TW_EV_STW_END: out[n++] = TW_ARG_STRING; break;
  case TW_EV_PROC_STATUS: out[n++] = TW_ARG_VALUE; break;
  case TW_EV_PROC_STEAL: out[n++] = TW_ARG_PSTATUS; break;
  case TW_EV_USER_TASK_END:
    out[n++] = TW_ARG_TASK;
    out[n++] = TW_ARG_STRING;
    break;
  default: break;
  }
  return n;
}
