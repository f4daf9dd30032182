/* SPDX-License-Identifier: Apache-2.0 */
/* One thread does everything in turns: messages of loops, requests of readers, ends of leases. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "collector/lease/private.h"

enum { TURN_BUNDLES = 64 }; /* bundles of each loop before the readers' turn */

static const uint64_t IDLE_NS = 1000000000; /* a turn a second, for the watchdog */

static struct tc_bundle *take_from(struct tc__inbox *inbox) {
  struct tc_bundle *bundle = tc_spsc_queue_take(&inbox->queue);

  if (bundle == NULL) return NULL;
  TB_MAGIC_CHECK(bundle, TC_BUNDLE_MAGIC);
  atomic_fetch_sub(&inbox->bytes, bundle->len);
  return bundle;
}

/* Returns true if there may be more. */
static bool take_bundles(struct tc_leases *l) {
  bool more = false;

  for (unsigned i = 0; i < l->env.loops; i++) {
    struct tc_bundle *bundle;
    unsigned n = 0;

    while (n < TURN_BUNDLES && (bundle = take_from(&l->inbox[i])) != NULL) {
      tc__lease_bundle(l, i, bundle);
      n++;
    }
    more = more || n == TURN_BUNDLES;
  }
  return more;
}

static void take_asks(struct tc_leases *l) {
  struct tc_lease_ask *ask, *next;

  pthread_mutex_lock(&l->lock);
  ask = TB_MOVE(l->asks);
  l->asks_end = &l->asks;
  pthread_mutex_unlock(&l->lock);
  for (; ask != NULL; ask = next) {
    next = ask->next;
    tc__lease_ask(l, ask);
  }
}

static bool has_work(void *self) {
  struct tc_leases *l = self;

  if (atomic_load(&l->stopping) || atomic_load(&l->recheck) || atomic_load(&l->left)) return true;
  for (unsigned i = 0; i < l->env.loops; i++)
    if (!tc_spsc_queue_is_empty(&l->inbox[i].queue)) return true;
  pthread_mutex_lock(&l->lock);
  bool asked = l->asks != NULL;
  pthread_mutex_unlock(&l->lock);
  return asked;
}

static void *run_leases(void *self) {
  struct tc_leases *l = self;

  while (!atomic_load(&l->stopping)) {
    bool more = take_bundles(l);
    atomic_fetch_add_explicit(&l->turns, 1, memory_order_relaxed);
    take_asks(l);
    if (atomic_exchange(&l->recheck, false)) tc__lease_recheck(l);
    atomic_store(&l->left, false); /* tc__lease_time() finds the askers that left */
    uint64_t sleep_ns = tc__lease_time(l);
    if (!more) tc_wakeup_sleep(&l->wakeup, sleep_ns < IDLE_NS ? sleep_ns : IDLE_NS, has_work, l);
  }
  return NULL;
}

void tc_leases_ask(struct tc_leases *l, struct tc_lease_ask *ask) {
  pthread_mutex_lock(&l->lock);
  bool closed = l->closed;
  if (!closed) {
    ask->next = NULL;
    *l->asks_end = ask;
    l->asks_end = &ask->next;
  }
  pthread_mutex_unlock(&l->lock);
  if (closed)
    tc__lease_refuse(ask, TB_IO, "the collector is shutting down");
  else
    tc_wakeup_wake(&l->wakeup);
}

void tc_leases_leave(struct tc_leases *l, struct tc_lease_ask *ask) {
  atomic_store(&ask->left, true);
  atomic_store(&l->left, true);
  tc_wakeup_wake(&l->wakeup);
}

bool tc_leases_post(struct tc_leases *l, unsigned loop, struct tc_bundle *bundle) {
  struct tc__inbox *inbox = &l->inbox[loop];
  size_t len = bundle->len;

  if (atomic_fetch_add(&inbox->bytes, len) + len <= TC_LEASE_TRANSIT_BYTES &&
      tc_spsc_queue_post(&inbox->queue, bundle))
    return true;
  atomic_fetch_sub(&inbox->bytes, len);
  return false;
}

uint64_t tc_leases_turns(const struct tc_leases *l) {
  return atomic_load(&l->turns);
}

void tc_leases_recheck(struct tc_leases *l) {
  atomic_store(&l->recheck, true);
  tc_wakeup_wake(&l->wakeup);
}

struct tc_metrics *tc_leases_metrics(struct tc_leases *l) {
  return &l->metrics;
}

tb_rc tc_leases_new(const struct tc_leases_env *env, struct tb_diag *diag, struct tc_leases **out) {
  struct tc_leases *l = aligned_alloc(64, (sizeof *l + env->loops * sizeof *l->inbox + 63) & ~63ul);

  if (l == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  memset(l, 0, sizeof *l);
  l->env = *env;
  l->asks_end = &l->asks;
  l->closed = true;
  l->env.config = NULL;
  l->max = (size_t)env->config->lease_max;
  l->owner_max = (size_t)env->config->lease_owner_max;
  l->window = (size_t)env->config->lease_window;
  l->memory_max = (size_t)env->config->lease_memory_max;
  l->expire_ns = env->config->lease_expire;
  l->lease = calloc(l->max, sizeof *l->lease);
  pthread_mutex_init(&l->lock, NULL);
  for (unsigned i = 0; i < env->loops; i++) {
    tc_spsc_queue_init(&l->inbox[i].queue, tc_wakeup_wake, &l->wakeup);
    atomic_init(&l->inbox[i].bytes, 0);
  }
  tb_rc rc = tc_wakeup_init(&l->wakeup, diag);
  if (rc == TB_OK && l->lease == NULL) rc = tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  if (rc != TB_OK) {
    tc_leases_free(l);
    return rc;
  }
  *out = l;
  return TB_OK;
}

tb_rc tc_leases_start(struct tc_leases *l, struct tb_diag *diag) {
  int rv = tc_thread_start(&l->thread, NULL, run_leases, l);

  if (rv != 0) return tb_fail(diag, TB_IO, "leases' thread: %s", strerror(rv));
  pthread_setname_np(l->thread, "tc-leases");
  l->started = true;
  pthread_mutex_lock(&l->lock);
  l->closed = false;
  pthread_mutex_unlock(&l->lock);
  return TB_OK;
}

void tc_leases_stop(struct tc_leases *l) {
  if (l == NULL || !l->started) return;
  atomic_store(&l->stopping, true);
  tc_wakeup_wake(&l->wakeup);
  pthread_join(l->thread, NULL);
  l->started = false;

  pthread_mutex_lock(&l->lock);
  l->closed = true;
  struct tc_lease_ask *ask = TB_MOVE(l->asks), *next;
  pthread_mutex_unlock(&l->lock);
  for (; ask != NULL; ask = next) {
    next = ask->next;
    tc__lease_refuse(ask, TB_IO, "the collector is shutting down");
  }
  for (struct tc__lease *lease = l->lease; lease < l->lease + l->max; lease++)
    if (lease->waiting != NULL)
      tc__lease_refuse(TB_MOVE(lease->waiting), TB_IO, "the collector is shutting down");
}

void tc_leases_free(struct tc_leases *l) {
  struct tc_bundle *bundle;

  if (l == NULL) return;
  assert(!l->started && "stopped first");
  for (unsigned i = 0; i < l->env.loops; i++)
    while ((bundle = take_from(&l->inbox[i])) != NULL) tc_bundle_free(bundle);
  for (size_t i = 0; l->lease != NULL && i < l->max; i++)
    if (l->lease[i].id != 0) {
      tc_lease_window_fini(&l->lease[i].window);
      sk_X509_pop_free(l->lease[i].reader, X509_free);
    }
  tc_wakeup_fini(&l->wakeup);
  pthread_mutex_destroy(&l->lock);
  free(l->lease);
  free(l);
}
