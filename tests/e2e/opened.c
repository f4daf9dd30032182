/* SPDX-License-Identifier: Apache-2.0 */
/* opened SERVER CERTS SPOOL_DIR: a session with everything that the agent can do, as long as its
 * standard input is open. The name of the main thread shows when the session has begun and when
 * it ends. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "traceagent.h"

static volatile unsigned sum;

static void *work(void *until) {
  ta_name region = ta_name_of("region");
  struct pollfd end = { .fd = STDIN_FILENO, .events = POLLIN };

  do {
    ta_region_begin(region, 0);
    for (unsigned i = 0; i < 3000000; i++) sum += i;
    ta_region_end();
  } while (poll(&end, 1, 1) == 0);
  return until;
}

int main(int argc, char **argv) {
  struct ta_forward_config where = { .service = "opened" };
  struct ta_emit_config how = {
    .generation_ms = 50, .stack_depth = 16, .samples_hz = 100, .allocfree = 1
  };
  pthread_t thread;

  if (argc != 4) return 2;
  where.server = argv[1];
  where.certs = argv[2];
  where.spool_dir = argv[3];
  int error = ta_emit_start(&where, &how);
  if (error != TA_OK) {
    fprintf(stderr, "start: %s\n", ta_strerror(error));
    return 1;
  }
  prctl(PR_SET_NAME, "begun");
  pthread_create(&thread, NULL, work, NULL);
  work(NULL);
  pthread_join(thread, NULL);
  prctl(PR_SET_NAME, "over");
  error = ta_emit_stop(20000);
  puts(ta_strerror(error));
  return 0;
}
