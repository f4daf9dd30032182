/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent/emit/standing_clock.h"

#include <pthread.h>
#include <stdlib.h>

enum { BACK_NS = 500000, MEMORY_BYTES = 8 << 20 };

static _Atomic int64_t stands_at_ns; /* 0: the clock runs */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out) {
  int64_t at = atomic_load(&stands_at_ns);

  if (clock != CLOCK_MONOTONIC || at == 0) return __real_clock_gettime(clock, out);
  *out = (struct timespec){ at / 1000000000, at % 1000000000 };
  return 0;
}

static pthread_barrier_t met;

static void *write_figures(void *arg) {
  (void)arg;
  for (int gen = 0; gen < STANDING_GENERATIONS; gen++) {
    for (uint64_t i = 0; i < STANDING_EVENTS; i++) ta_heap_alloc(i);
    ta_wait_begin(TA_WAIT_SLEEP);
    ta_wait_end();
    pthread_barrier_wait(&met);
    pthread_barrier_wait(&met);
  }
  return NULL;
}

void standing_clock_emit(struct emitted *e) {
  struct ta_emit_config config = { .generation_ms = 60000, .monotonic_clock = 1 };
  pthread_t thread[STANDING_THREADS];

  atomic_store(&stands_at_ns, (int64_t)ta_mono_ns());
  if (emit_begin(e, &config, MEMORY_BYTES) != 0) abort();
  pthread_barrier_init(&met, NULL, STANDING_THREADS + 1);
  for (int i = 0; i < STANDING_THREADS; i++) pthread_create(&thread[i], NULL, write_figures, NULL);
  for (int gen = 0; gen < STANDING_GENERATIONS; gen++) {
    pthread_barrier_wait(&met);
    emit_end_generation();
    if (gen == 0) atomic_fetch_sub(&stands_at_ns, BACK_NS);
    pthread_barrier_wait(&met);
  }
  for (int i = 0; i < STANDING_THREADS; i++) pthread_join(thread[i], NULL);
  if (emit_end(e) != 0) abort();
  atomic_store(&stands_at_ns, 0);
}
