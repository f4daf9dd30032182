/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves main() while a thread emits and generations end, without a word to the agent; for test_emit.c. Answers 5. With an
 * argument its threads end one by one: the last one's end is the process's, with the handlers of exit(); one answers 6. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/emit/generation/session.h"

static void take_header(void *self, const void *bytes, size_t n) {
  (void)self, (void)bytes, (void)n;
}
static void put_nothing(void *self, uint64_t gen, const void *bytes, size_t n) {
  (void)self, (void)gen, (void)bytes, (void)n;
}
static void note_nothing(void *self, uint64_t gen) {
  (void)self, (void)gen;
}
static void lose_nothing(void *self, uint64_t gen, enum ta_loss why) {
  (void)self, (void)gen, (void)why;
}

static void *emit_for_ever(void *arg) {
  for (;;) ta_heap_alloc(1);
  return arg;
}

static void answer_six(void) {
  _exit(6);
}

static void *emit_once(void *arg) {
  ta_heap_alloc(1);
  return arg;
}

int main(int argc, char **argv) {
  (void)argv;
  struct ta_outlet out = {
    .header = take_header, .put = put_nothing, .lose = lose_nothing, .end = note_nothing
  };
  struct ta_emit_config config = { .generation_ms = 50, .generation_bytes = 64 << 10 };
  struct ta_emit_status status = { .size = sizeof status };
  pthread_t thread;

  if (ta_emit_start_to(&out, &config, 1 << 20) != 0) return 1;
  if (argc > 1) {
    if (atexit(answer_six) != 0 || pthread_create(&thread, NULL, emit_once, NULL) != 0) return 1;
    pthread_exit(NULL);
  }
  if (pthread_create(&thread, NULL, emit_for_ever, NULL) != 0) return 1;
  while (ta_emit_status(&status) == 0 && status.generations < 2) poll(NULL, 0, 1);
  return 5;
}
