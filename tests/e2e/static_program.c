/* SPDX-License-Identifier: Apache-2.0 */
/* static_program SERVER CERTS: one session of a program without a loader. */
#include <pthread.h>
#include <stdio.h>

#include "traceagent.h"

static void *thread_main(void *self) {
  ta_region_begin(ta_name_of("static"), 0);
  ta_region_end();
  return self;
}

int main(int argc, char **argv) {
  struct ta_forward_config where = { .service = "static" };
  pthread_t thread;

  if (argc != 3) return 2;
  where.server = argv[1];
  where.certs = argv[2];
  int error = ta_emit_start(&where, NULL);
  if (error != TA_OK) {
    fprintf(stderr, "start: %s\n", ta_strerror(error));
    return 1;
  }
  pthread_create(&thread, NULL, thread_main, NULL);
  pthread_join(thread, NULL);
  error = ta_emit_stop(10000);
  puts(error == TA_OK ? "done" : ta_strerror(error));
  return 0;
}
