/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's place is its proc's number. The thread keeps its place across sessions until it ends, because it keeps the
 * pointer to it. */
#include <pthread.h>

#include "agent/emit/core/reserve.h"
#include "agent/emit/events/put.h"
#include "agent/emit/events/waiters.h"
#include "agent/host/process.h"

enum { THREADS_MIN = 256 };

static const uint32_t none = UINT32_MAX;

TA_AT_FORK struct ta_emit ta_emit;
struct ta_thread *ta_threads;
__thread struct ta_thread *ta_self __attribute__((tls_model("initial-exec")));

static TA_AT_FORK pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ta_reserve table;
static uint32_t first_free = UINT32_MAX;
static _Atomic uint32_t end;

TA_CODE_AT_FORK void ta_emit_lock(void) {
  pthread_mutex_lock(&lock);
}
TA_CODE_AT_FORK void ta_emit_unlock(void) {
  pthread_mutex_unlock(&lock);
}

tb_rc ta_threads_make(uint32_t max) {
  if (ta_threads != NULL) return TB_OK;
  TB_TRY(ta_reserve_init(&table, sizeof *ta_threads, max, max < THREADS_MIN ? max : THREADS_MIN));
  ta_threads = (struct ta_thread *)(void *)table.bytes;
  return TB_OK;
}

struct ta_thread *ta_threads_acquire(void) {
  struct ta_thread *t = NULL;

  ta_emit_lock();
  if (first_free != none) {
    t = &ta_threads[first_free];
    first_free = t->next_free;
  } else if (ta_reserve_grow(&table, end + 1)) {
    t = &ta_threads[end];
    t->place = end;
    atomic_fetch_add(&end, 1);
  }
  if (t != NULL) {
    t->session = 0;
    t->stack = (struct ta_bounds){ 0 };
    if (atomic_exchange(&t->left_behind, 0) != 0) ta_drop_open_batches(t, false);
    t->running_gen = TA_NO_GEN;
    atomic_store(&t->state, TA_THREAD_LIVE);
  }
  ta_emit_unlock();
  return t;
}

static void free_place(struct ta_thread *t) {
  atomic_store(&t->state, TA_THREAD_FREE);
  t->next_free = first_free;
  first_free = t->place;
}

/* While the flusher is at the generation before t's last one, it may still need t's state. */
void ta_threads_release(struct ta_thread *t) {
  ta_emit_lock();
  if (ta_gen_before_is_reported(ta_gen(t)))
    free_place(t);
  else
    atomic_store(&t->state, TA_THREAD_DEAD);
  ta_emit_unlock();
}

void ta_threads_free(struct ta_thread *t) {
  ta_emit_lock();
  free_place(t);
  ta_emit_unlock();
}

bool ta_threads_are_all_taken(void) {
  ta_emit_lock();
  bool all = first_free == none && end == table.max;
  ta_emit_unlock();
  return all;
}

bool ta_threads_any_left_behind(void) {
  for (uint32_t i = 0; i < ta_threads_end(); i++) {
    const struct ta_thread *t = &ta_threads[i];
    if (t->skipped_gen >= ta_emit.first_gen && atomic_load(&t->left_behind) != 0) return true;
  }
  return false;
}

uint32_t ta_threads_end(void) {
  return atomic_load(&end);
}

void ta_threads_reset(void) {
  ta_emit_lock(); /* threads end between sessions, too */
  for (uint32_t i = 0; i < end; i++) {
    struct ta_thread *t = &ta_threads[i];
    if (t->state == TA_THREAD_DEAD) free_place(t);
    atomic_store(&t->claim, 0);
    atomic_store(&t->now, 0);
    atomic_store(&t->before_gen, 0);
    atomic_store(&t->dropped, 0);
    atomic_store(&t->misused, 0);
    t->time = 0; /* it was by the old session's clock */
    t->proc_gen = 0;
  }
  ta_emit_unlock();
  ta_waiters_reset();
}

void ta_threads_forget(void) {
  ta_waiters_reset();
  ta_reserve_forget(&table);
  first_free = none;
  atomic_store(&end, 0);
  ta_self = NULL;
}
