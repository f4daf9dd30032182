/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a stream of which only the environment says where it goes; for test_forward_host.c, which runs it with another
 * user's rights. Answers 0 if the environment counted for nothing, 77 if the rights are not raised. */
#include <string.h>
#include <sys/auxv.h>

#include "traceagent.h"

/* The leak checker looks by ptrace(2), which a program with raised rights does not allow; nor does its environment reach
 * the sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=0";
}

int main(void) {
  ta_forward *f = NULL;

  if (getauxval(AT_SECURE) == 0) return 77;
  int error = ta_forward_open(&(struct ta_forward_config){ 0 }, &f);
  return error == TA_E_CONFIG && strcmp(ta_strerror(error), "server is not given") == 0 ? 0 : 1;
}
