/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a stream whose address is only in the environment. test_forward_host.c runs this program with another user's rights.
 * Exits with 0 if the environment was ignored, with 77 if the rights are not raised. */
#include <string.h>
#include <sys/auxv.h>

#include "traceagent.h"

/* The leak check needs ptrace(2), which a program with raised rights does not allow. Its environment does not reach the
 * sanitizer, so the options are here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=0";
}

int main(void) {
  ta_forward *f = NULL;

  if (getauxval(AT_SECURE) == 0) return 77;
  int error = ta_forward_open(&(struct ta_forward_config){ 0 }, &f);
  return error == TA_E_CONFIG &&
                 strcmp(ta_strerror(error), "server is not given (TRACEAGENT_SERVER)") == 0
             ? 0
             : 1;
}
