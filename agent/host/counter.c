/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host/counter.h"

#include <sys/prctl.h>

#include "agent/host/keep.h"

atomic_bool ta_counter_is_off;

static bool is_forbidden(void) {
  int mode = PR_TSC_ENABLE;

  return prctl(PR_GET_TSC, &mode, 0, 0, 0) == 0 && mode == PR_TSC_SIGSEGV;
}

void ta_counter_ask(void) {
  KEEP_ERRNO;

  if (!atomic_load(&ta_counter_is_off) && is_forbidden()) atomic_store(&ta_counter_is_off, true);
}

bool ta_counter_allow(void) {
  KEEP_ERRNO;

  if (!atomic_load(&ta_counter_is_off) || !is_forbidden()) return false;
  return prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0) == 0;
}

void ta_counter_forbid(void) {
  KEEP_ERRNO;

  prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
}
