/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/readers.h"

#include "base/clock.h"
#include "base/thread.h"
#include "collector/sealer/seal/show.h"

enum { SHOW_MS = 1000 };

void tc__readers_init(struct tc__readers *readers) {
  pthread_mutex_init(&readers->lock, NULL);
  tc_cond_init(&readers->is_done);
}

void tc__readers_fini(struct tc__readers *readers) {
  pthread_cond_destroy(&readers->is_done);
  pthread_mutex_destroy(&readers->lock);
}

void tc__readers_wait(struct tc__readers *readers, struct tc_wakeup *wakeup) {
  struct timespec deadline = tc_from_now(SHOW_MS);

  pthread_mutex_lock(&readers->lock);
  uint64_t mine = atomic_fetch_add(&readers->asked, 1) + 1;
  tc_wakeup_wake(wakeup);
  int rc = 0;
  while (rc == 0 && readers->done < mine)
    rc = pthread_cond_timedwait(&readers->is_done, &readers->lock, &deadline);
  pthread_mutex_unlock(&readers->lock);
}

bool tc__readers_ask(struct tc__readers *readers) {
  return atomic_load(&readers->asked) != readers->done;
}

static void wake_readers(struct tc__readers *readers, uint64_t upto) {
  pthread_mutex_lock(&readers->lock);
  readers->done = upto;
  pthread_cond_broadcast(&readers->is_done);
  pthread_mutex_unlock(&readers->lock);
}

/* Readers that ask during a pass are served by the next one: the current one may have missed later changes. */
void tc__readers_serve(struct tc__readers *readers, struct tc__seal *seal) {
  uint64_t asked = atomic_load(&readers->asked);
  struct tb_diag diag = { 0 };
  bool done;

  if (asked == readers->done) return;
  if (readers->served == readers->done) {
    readers->served = asked;
    tc__begin_show(seal);
  }
  /* A failure is logged; the readers then read what the catalog has. */
  (void)!tc__show_open_runs(seal, tc_mono_ns() + TC__SHOW_NS, &diag, &done);
  if (done) wake_readers(readers, readers->served);
}

void tc__readers_end(struct tc__readers *readers) {
  wake_readers(readers, UINT64_MAX);
}
