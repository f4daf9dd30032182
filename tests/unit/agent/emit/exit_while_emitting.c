/* SPDX-License-Identifier: Apache-2.0 */
/* Returns from main() with 5 while a thread emits and generations end, without stopping the session; for test_emit.c. With an
 * argument its threads end one by one: the process ends with the last thread, and runs the handlers of exit(), one of which
 * exits with 6.
 *
 *   leave                  nothing else
 *   leave-without-thread   after main() no thread can be created, the first two times
 *   leave-without-threads  after main() no thread can ever be created
 *   leave-stuck            the outlet accepts nothing once the session is to be stopped
 *   leave-unstopped        the last thread cannot stop the session, because the outlet blocks and
 *                          continues later; beside the flusher there is another thread of the agent, as with a stream */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/emit/generation/session.h"
#include "agent/host/spawn.h"

static const char *how;
static atomic_bool main_has_left, is_stopping, is_held;
static atomic_uint made; /* threads created since then */

static bool is(const char *name) {
  return how != NULL && strcmp(how, name) == 0;
}

/* Used instead of the C library's function. */
int pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
  int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

  *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
  if (atomic_load(&main_has_left)) {
    unsigned before = atomic_fetch_add(&made, 1);
    if (is("leave-without-threads") || (is("leave-without-thread") && before < 2)) return EAGAIN;
    atomic_store(&is_stopping, true);
  }
  return next(out, attr, run, arg);
}

static void take_header(void *self, const void *bytes, size_t n) {
  (void)self, (void)bytes, (void)n;
}
static void put(void *self, uint64_t gen, const void *bytes, size_t n) {
  (void)self, (void)gen, (void)bytes, (void)n;
  while (is("leave-stuck") && atomic_load(&is_stopping)) pause();
  while (atomic_load(&is_held)) poll(NULL, 0, 1);
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
  if (!is("leave-unstopped")) return arg;
  atomic_store(&is_held, true);
  if (ta_emit_stop(0) != TA_E_TIMEOUT) _exit(2);
  atomic_store(&is_held, false);
  return arg;
}

static void *send_for_ever(void *arg) {
  for (;;) pause();
  return arg;
}

static int leave(void) {
  pthread_t thread;

  if (is("leave-unstopped") && ta_spawn_detached("sender", 0, send_for_ever, NULL) != 0) return 1;
  if (atexit(answer_six) != 0 || pthread_create(&thread, NULL, emit_once, NULL) != 0) return 1;
  atomic_store(&main_has_left, true);
  pthread_exit(NULL);
}

int main(int argc, char **argv) {
  struct ta_outlet out = {
    .header = take_header, .put = put, .lose = lose_nothing, .end = note_nothing
  };
  struct ta_emit_config config = { .generation_ms = 50, .generation_bytes = 64 << 10 };
  struct ta_emit_status status = { .size = sizeof status };
  pthread_t thread;

  how = argc > 1 ? argv[1] : NULL;
  if (ta_emit_start_to(&out, &config, 1 << 20) != 0) return 1;
  if (how != NULL) return leave();
  if (pthread_create(&thread, NULL, emit_for_ever, NULL) != 0) return 1;
  while (ta_emit_status(&status) == 0 && status.generations < 2) poll(NULL, 0, 1);
  return 5;
}
