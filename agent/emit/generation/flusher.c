/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/generation/flusher.h"

#include <errno.h>
#include <semaphore.h>

#include "agent/host/clock.h"
#include "agent/host/process.h"
#include "agent/spool/wanted.h"

enum {
  REST_NS = 10000000,
  LOOK_NS = 1000000000,
  LOOK_OFTEN_NS = 100000000,
  DESERTED_IN_VAIN_MAX = 10,
  NAMES_SHARE = 5, /* divisor: the part of stop()'s time that may be spent on functions' names */
  /* A generation is given up if a pause, or a thread in the middle of an event, lasts longer. */
  PATIENCE_PERIODS = 10,
  PATIENCE_LEAST_MS = 2000, /* for such a thread: it may be descheduled */
};
static const uint64_t names_wait_max_ns = UINT64_C(5000000000);

static sem_t work;
static atomic_bool cut;    /* requested by ta_flusher_cut() */
static atomic_ullong snap; /* in ms, agent/spool/wanted.h */

void ta_emit_wake(bool urgent) {
  unsigned flusher_state = atomic_load(&ta_emit.flusher_state);

  if (flusher_state == TA_AWAKE || (flusher_state == TA_RESTS && !urgent)) return;
  if (flusher_state == TA_NOT_STARTED) {
    if (urgent || atomic_load(&ta_emit.late_bytes) >= TA_DUE_BYTES)
      atomic_store(&ta_emit.due, true);
    return;
  }
  if (atomic_exchange(&ta_emit.flusher_state, TA_AWAKE) != TA_AWAKE) sem_post(&work);
}

static void wake(void) {
  if (atomic_load(&ta_emit.flusher_state) == TA_NOT_STARTED) { /* run() first looks for work */
    atomic_store(&ta_emit.due, true);
    return;
  }
  atomic_store(&ta_emit.flusher_state, TA_AWAKE);
  sem_post(&work);
}

void ta_flusher_wait_for_run(void) {
  atomic_store(&ta_emit.late_bytes, 0);
  atomic_store(&ta_emit.due, false);
  atomic_store(&ta_emit.flusher_state, TA_NOT_STARTED);
}

void ta_flusher_init(struct ta_flusher *r, uint64_t period_ns, uint64_t bytes_max) {
  r->period_ns = period_ns;
  r->bytes_max = bytes_max;
  pthread_mutex_init(&r->lock, NULL);
  ta_cond_init(&r->generation_ended);
  sem_init(&work, 0, 0);
  atomic_store(&cut, false);
  atomic_store(&snap, 0);
}

uint64_t ta_flusher_patience(const struct ta_flusher *r) {
  uint64_t patience = PATIENCE_PERIODS * r->period_ns,
           least = PATIENCE_LEAST_MS * UINT64_C(1000000);

  return patience > least ? patience : least;
}

void ta_flusher_fini(struct ta_flusher *r) {
  pthread_cond_destroy(&r->generation_ended);
  pthread_mutex_destroy(&r->lock);
}

static uint64_t asked_for(struct ta_flusher *r) {
  pthread_mutex_lock(&r->lock);
  uint64_t n = r->asked;
  pthread_mutex_unlock(&r->lock);
  return n;
}

static void answer_callers(struct ta_flusher *r, uint64_t n) {
  pthread_mutex_lock(&r->lock);
  r->answered = n;
  pthread_cond_broadcast(&r->generation_ended);
  pthread_mutex_unlock(&r->lock);
}

/* The generation ends after its period, or after TA_PERIOD_MS_MIN if it is too large or given up. */
static uint64_t due_ns(const struct ta_flusher *r) {
  bool sooner = r->generation.bytes >= r->bytes_max || ta_given_up(ta_gen_now());

  return sooner ? r->began_ns + TA_PERIOD_MS_MIN * UINT64_C(1000000) : r->began_ns + r->period_ns;
}

/* Called before the generation ends, so that a snap includes it. */
static void take_snap(struct ta_flusher *r) {
  const struct ta_outlet *out = &r->generation.out;
  uint64_t last_ms;

  if (ta_wanted_take(&snap, &last_ms) && out->snap != NULL) out->snap(out->self, last_ms);
  if (atomic_exchange(&cut, false)) r->cut = true;
}

/* Ends the generation if it is due. An open pause delays that, up to PATIENCE_PERIODS. Until a first thread has written
 * anything there is nothing to end. */
static void end_if_due(struct ta_flusher *r, uint64_t now) {
  uint64_t asked = asked_for(r);

  take_snap(r);
  if (now < due_ns(r) && asked == r->answered && !r->cut) return;
  if (ta_goes_any()) {
    uint32_t ends = ta_gen_of(atomic_load(&ta_emit.word));
    bool forced = (r->paused_ns != 0 && now >= r->paused_ns + PATIENCE_PERIODS * r->period_ns) ||
                  ta_given_up(ends);
    if (!ta_generation_end(&r->generation, forced ? TA_END_FORCED : TA_END_NEXT)) {
      if (r->paused_ns == 0) r->paused_ns = now;
      return;
    }
  }
  r->paused_ns = 0;
  r->began_ns = now;
  r->cut = false;
  answer_callers(r, asked);
}

/* Returns when to look next whether the host's threads have all ended: the flusher must not keep the process alive. */
static uint64_t look_ns(const struct ta_flusher *r) {
  bool soon = ta_process_first_has_left() || r->deserted_in_vain > 0;
  uint64_t often = soon ? LOOK_OFTEN_NS : LOOK_NS;

  return r->deserted != NULL ? r->looked_ns + often : UINT64_MAX;
}

/* If no thread can be made to end the session, the process ends without that. */
static void look_for_host(struct ta_flusher *r, uint64_t now) {
  if (now < look_ns(r)) return;
  r->looked_ns = now;
  if (!ta_process_is_deserted()) return;
  if (r->deserted())
    r->deserted = NULL;
  else if (++r->deserted_in_vain == DESERTED_IN_VAIN_MAX)
    ta_process_end_as_first();
}

/* Sleeps until something is due. To miss no wakeup, it stores that it sleeps before it looks again for posted batches. */
static void sleep_until_due(struct ta_flusher *r, bool rest) {
  atomic_store(&ta_emit.flusher_state, rest ? TA_RESTS : TA_SLEEPS);
  uint64_t until_ns = due_ns(r), rested_ns = ta_mono_ns() + REST_NS;
  if (until_ns > look_ns(r)) until_ns = look_ns(r);
  if (r->paused_ns != 0 || (rest && until_ns > rested_ns)) until_ns = rested_ns;
  struct timespec until = ta_timespec(until_ns);
  if (rest || atomic_load(&ta_emit.pool.posted) == NULL)
    while (sem_clockwait(&work, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR)
      ;
  atomic_store(&ta_emit.flusher_state, TA_AWAKE);
}

void ta_flusher_end(struct ta_flusher *r) {
  struct tb_keeper *before = tb_check_keep(&r->keeper);

  atomic_store(&ta_emit.flusher_state, TA_AWAKE);
  take_snap(r);
  if (!ta_generation_is_lost(&r->generation)) ta_generation_end(&r->generation, TA_END_LAST);
  pthread_mutex_lock(&r->lock);
  r->ended = true;
  pthread_cond_broadcast(&r->generation_ended);
  pthread_mutex_unlock(&r->lock);
  tb_check_keep(before);
}

static void watch_host_while_abandoned(struct ta_flusher *r) {
  pthread_mutex_lock(&r->lock);
  while (r->abandoned) {
    struct timespec until = ta_timespec(ta_mono_ns() + LOOK_OFTEN_NS);
    pthread_cond_timedwait(&r->generation_ended, &r->lock, &until);
    pthread_mutex_unlock(&r->lock);
    look_for_host(r, ta_mono_ns());
    pthread_mutex_lock(&r->lock);
  }
  pthread_mutex_unlock(&r->lock);
}

void ta_flusher_run(struct ta_flusher *r) {
  tb_check_keep(&r->keeper);
  atomic_store(&ta_emit.flusher_state, TA_AWAKE);
  r->began_ns = r->looked_ns = r->generation.began.mono_ns;
  while (!atomic_load(&r->stopping) && atomic_load(&r->keeper.where) == NULL &&
         !ta_generation_is_lost(&r->generation)) {
    bool busy = ta_generation_collect(&r->generation);
    end_if_due(r, ta_mono_ns());
    look_for_host(r, ta_mono_ns());
    sleep_until_due(r, busy || r->paused_ns != 0);
  }
  ta_flusher_end(r);
  watch_host_while_abandoned(r);
}

/* Calls of other threads. */

uint64_t ta_flusher_ask(struct ta_flusher *r) {
  pthread_mutex_lock(&r->lock);
  uint64_t n = ++r->asked;
  pthread_mutex_unlock(&r->lock);
  wake();
  return n;
}

void ta_flusher_snap(uint64_t last_ms) {
  ta_wanted_ask(&snap, last_ms);
  wake();
}

void ta_flusher_cut(void) {
  atomic_store(&cut, true);
  wake();
}

static bool set_abandoned(struct ta_flusher *r, bool yes) {
  pthread_mutex_lock(&r->lock);
  r->abandoned = yes && !r->ended;
  bool is = r->abandoned;
  pthread_cond_broadcast(&r->generation_ended);
  pthread_mutex_unlock(&r->lock);
  return is;
}

bool ta_flusher_abandon(struct ta_flusher *r) {
  return set_abandoned(r, true);
}

/* On a busy machine the default of half a second may be too short, and most callers of stop() allow more. */
static uint64_t names_wait_ns(uint64_t until_ns) {
  uint64_t now = ta_mono_ns();
  uint64_t share = until_ns > now ? (until_ns - now) / NAMES_SHARE : 0;

  return share < names_wait_max_ns ? share : names_wait_max_ns;
}

void ta_flusher_stop(struct ta_flusher *r, uint64_t until_ns) {
  set_abandoned(r, false);
  atomic_store(&r->generation.names_wait_ns, names_wait_ns(until_ns));
  atomic_store(&r->stopping, true);
  wake();
}

bool ta_flusher_wait(struct ta_flusher *r, uint64_t n, uint64_t until_ns) {
  struct timespec until = ta_timespec(until_ns);
  int timed_out = 0;

  pthread_mutex_lock(&r->lock);
  while (!r->ended && (n == 0 || r->answered < n) && timed_out == 0)
    timed_out = until_ns == UINT64_MAX
                    ? pthread_cond_wait(&r->generation_ended, &r->lock)
                    : pthread_cond_timedwait(&r->generation_ended, &r->lock, &until);
  bool done = r->ended || (n != 0 && r->answered >= n);
  pthread_mutex_unlock(&r->lock);
  return done;
}
