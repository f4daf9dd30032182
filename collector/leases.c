/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed table of leases; each has at most one question that waits. All is done on one thread, in
 * turns: what loops sent, what readers ask, whose time is over. */
#include "collector/leases.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "collector/mailbox.h"
#include "collector/waker.h"

enum {
  TURN_BUNDLES = 64, /* of each loop, before readers have their turn */
  OPEN_MS = 10000,   /* a loop takes an order within a slice or two */
  SLEEP_NS_MAX = 1000000000,
};

struct lease {
  uint64_t id;      /* 0: free */
  unsigned unready; /* loops that do not know it yet */
  struct tc_lease_window window;
  struct tc_lease_ask *waiting;
  uint64_t waits_until_ns;
  uint64_t asked_ns;
};

struct inbox { /* of a loop */
  struct tc_mailbox mailbox;
  atomic_size_t bytes; /* in it */
};

struct tc_leases {
  struct tc_leases_env env;
  struct tc_waker waker;
  pthread_t thread;
  bool started;
  atomic_bool stopping;
  pthread_mutex_t lock; /* of asks */
  struct tc_lease_ask *asks, **asks_end;
  bool closed; /* asks are answered at once; under lock */
  struct lease *lease;
  size_t max; /* as configured; a reload may free the configuration */
  size_t window, memory_max;
  uint64_t expire_ns;
  size_t bytes; /* of all windows */
  struct tc_metrics metrics;
  struct inbox inbox[];
};

static uint64_t mono_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* --- answers ----------------------------------------------------------------------------------- */

static void refuse(struct tc_lease_ask *ask, tb_rc rc, const char *error) {
  struct tc_lease_answer answer = { .rc = rc, .error = error };

  ask->answer(ask, &answer);
}

static void answer_bundles(struct tc_lease_ask *ask, const struct tc_bundle *bundles, size_t n,
                           uint64_t lost) {
  struct tc_lease_answer answer = { .bundles = bundles, .n = n, .lost = lost };

  ask->answer(ask, &answer);
}

/* --- windows ----------------------------------------------------------------------------------- */

static struct lease *find(struct tc_leases *l, uint64_t id) {
  for (struct lease *lease = l->lease; lease < l->lease + l->max; lease++)
    if (lease->id == id && id != 0) return lease;
  return NULL;
}

static struct lease *largest(struct tc_leases *l) {
  struct lease *most = l->lease;

  for (struct lease *lease = l->lease; lease < l->lease + l->max; lease++)
    if (lease->window.bytes > most->window.bytes) most = lease;
  return most;
}

/* Notes what has changed in a window since it was like before. */
static void account(struct tc_leases *l, const struct lease *lease, size_t bytes_before,
                    uint64_t lost_before) {
  l->bytes += lease->window.bytes - bytes_before;
  atomic_store_explicit(&l->metrics.lease_bytes, l->bytes, memory_order_relaxed);
  tc_metric_add(&l->metrics.lease_events_lost_total, lease->window.lost - lost_before);
}

static void add_bundle(struct tc_leases *l, struct lease *lease, struct tc_bundle *bundle) {
  size_t bytes = lease->window.bytes;
  uint64_t lost = lease->window.lost;

  tc_metric_add(&l->metrics.lease_events_total, bundle->events);
  tc_lease_window_add(&lease->window, bundle);
  account(l, lease, bytes, lost);
  while (l->bytes > l->memory_max) {
    struct lease *most = largest(l);
    bytes = most->window.bytes;
    lost = most->window.lost;
    if (!tc_lease_window_drop(&most->window)) break;
    account(l, most, bytes, lost);
  }
}

/* Answers the lease's question if there is something to say. */
static void try_answer(struct tc_leases *l, struct lease *lease) {
  size_t bytes = lease->window.bytes, n;
  const struct tc_bundle *bundles;
  struct tc_lease_ask *ask = lease->waiting;
  uint64_t lost;
  tb_rc rc = tc_lease_window_next(&lease->window, ask->after, ask->bytes_max, &bundles, &n, &lost);

  account(l, lease, bytes, lease->window.lost);
  if (rc == TB_OK && n == 0) return;
  lease->waiting = NULL;
  lease->asked_ns = mono_ns();
  if (rc == TB_OK)
    answer_bundles(ask, bundles, n, lost);
  else
    refuse(ask, rc, "that bundle is not one of this lease's, or is gone for long");
}

/* --- leases begin and end ---------------------------------------------------------------------- */

static bool give_order(struct tc_leases *l, unsigned loop, const struct tc_tap_order *order) {
  struct tc_tap_order *copy = malloc(sizeof *copy);

  if (copy == NULL) return false;
  *copy = *order;
  if (l->env.order(l->env.self, loop, copy)) return true;
  free(copy);
  return false;
}

/* A loop that does not hear of it goes on sending bundles, and is told again for each. */
static void call_off(struct tc_leases *l, uint64_t id) {
  struct tc_tap_order order = { .remove = true, .lease = id };

  for (unsigned i = 0; i < l->env.loops; i++) (void)give_order(l, i, &order);
}

/* Who waits is answered last: what it is told is so by then. */
static void end(struct tc_leases *l, struct lease *lease, tb_rc rc, const char *why) {
  struct tc_lease_ask *waiting = TB_MOVE(lease->waiting);
  size_t bytes = lease->window.bytes;

  call_off(l, lease->id);
  tc_lease_window_fini(&lease->window);
  account(l, lease, bytes, lease->window.lost);
  lease->id = 0;
  tc_metric_sub(&l->metrics.leases, 1);
  if (waiting != NULL) refuse(waiting, rc, why);
}

static const char busy[] = "the collector is too busy for another lease";

static struct lease *take_free(struct tc_leases *l) {
  for (struct lease *lease = l->lease; lease < l->lease + l->max; lease++) {
    if (lease->id != 0) continue;
    *lease = (struct lease){ .asked_ns = mono_ns() };
    while (lease->id == 0 || find(l, lease->id) != lease)
      if (getrandom(&lease->id, sizeof lease->id, 0) != sizeof lease->id) return NULL;
    return lease;
  }
  return NULL;
}

static void ask_open(struct tc_leases *l, struct tc_lease_ask *ask) {
  struct tc_tap_order order = { .filter = ask->filter };
  struct lease *lease = take_free(l);
  size_t bytes = l->window;
  char text[80];

  if (lease == NULL) {
    snprintf(text, sizeof text, "lease.max is reached: there are %zu leases", l->max);
    refuse(ask, TB_BUDGET, text);
    return;
  }
  if (ask->window_bytes != 0 && ask->window_bytes < bytes) bytes = ask->window_bytes;
  tc_lease_window_init(&lease->window, bytes);
  lease->unready = l->env.loops;
  lease->waiting = ask;
  lease->waits_until_ns = lease->asked_ns + OPEN_MS * UINT64_C(1000000);
  tc_metric_add(&l->metrics.leases, 1);
  tc_metric_add(&l->metrics.leases_opened_total, 1);
  order.lease = lease->id;
  for (unsigned i = 0; i < l->env.loops; i++) {
    if (give_order(l, i, &order)) continue;
    end(l, lease, TB_BUDGET, busy);
    return;
  }
}

/* A loop knows the lease; the last one opens it. */
static void take_ready(struct tc_leases *l, struct lease *lease) {
  struct tc_lease_answer answer = { .lease = lease->id,
                                    .window_bytes = lease->window.bytes_max,
                                    .expire_ns = l->expire_ns };

  if (lease->unready == 0 || --lease->unready > 0) return;
  struct tc_lease_ask *ask = TB_MOVE(lease->waiting);
  lease->asked_ns = mono_ns();
  ask->answer(ask, &answer);
}

/* --- what comes -------------------------------------------------------------------------------- */

static const char unknown[] = "no such lease: it expired, or the collector was restarted";

static void ask_next(struct tc_leases *l, struct tc_lease_ask *ask) {
  struct lease *lease = find(l, ask->lease);

  if (lease == NULL || lease->unready > 0) {
    refuse(ask, TB_NOTFOUND, unknown);
    return;
  }
  if (lease->waiting != NULL) answer_bundles(TB_MOVE(lease->waiting), NULL, 0, 0);
  lease->waiting = ask;
  lease->asked_ns = mono_ns();
  lease->waits_until_ns = lease->asked_ns + ask->wait_ms * UINT64_C(1000000);
  try_answer(l, lease);
}

static void ask_release(struct tc_leases *l, struct tc_lease_ask *ask) {
  struct tc_lease_answer answer = { .rc = TB_OK };
  struct lease *lease = find(l, ask->lease);

  if (lease == NULL) {
    refuse(ask, TB_NOTFOUND, unknown);
    return;
  }
  end(l, lease, TB_NOTFOUND, "the lease was released");
  ask->answer(ask, &answer);
}

static void take_ask(struct tc_leases *l, struct tc_lease_ask *ask) {
  switch (ask->kind) {
  case TC_LEASE_OPEN: ask_open(l, ask); break;
  case TC_LEASE_NEXT: ask_next(l, ask); break;
  case TC_LEASE_RELEASE: ask_release(l, ask); break;
  }
}

static void take_bundle(struct tc_leases *l, unsigned loop, struct tc_bundle *bundle) {
  struct lease *lease = find(l, bundle->lease);
  struct tc_tap_order stop = { .remove = true, .lease = bundle->lease };

  if (lease != NULL && !bundle->ready) {
    add_bundle(l, lease, bundle);
    if (lease->waiting != NULL && lease->unready == 0) try_answer(l, lease);
    return;
  }
  if (lease != NULL)
    take_ready(l, lease);
  else
    (void)give_order(l, loop, &stop);
  free(bundle);
}

static struct tc_bundle *take_from(struct inbox *inbox) {
  struct tc_bundle *bundle = tc_mailbox_take(&inbox->mailbox);

  if (bundle != NULL) atomic_fetch_sub(&inbox->bytes, bundle->len);
  return bundle;
}

/* True: there may be more. */
static bool take_bundles(struct tc_leases *l) {
  bool more = false;

  for (unsigned i = 0; i < l->env.loops; i++) {
    struct tc_bundle *bundle;
    unsigned n = 0;

    while (n < TURN_BUNDLES && (bundle = take_from(&l->inbox[i])) != NULL) {
      take_bundle(l, i, bundle);
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
    take_ask(l, ask);
  }
}

/* --- time -------------------------------------------------------------------------------------- */

static void stop_waiting(struct tc_leases *l, struct lease *lease, uint64_t now) {
  if (lease->unready > 0) {
    end(l, lease, TB_BUDGET, busy);
    return;
  }
  lease->asked_ns = now;
  answer_bundles(TB_MOVE(lease->waiting), NULL, 0, 0);
}

/* Answers how long nothing is due. */
static uint64_t keep_time(struct tc_leases *l) {
  uint64_t now = mono_ns(), sleep_ns = SLEEP_NS_MAX;

  for (struct lease *lease = l->lease; lease < l->lease + l->max; lease++) {
    if (lease->id == 0) continue;
    if (lease->waiting != NULL && now >= lease->waits_until_ns) stop_waiting(l, lease, now);
    if (lease->id == 0) continue;
    uint64_t due = lease->waiting != NULL ? lease->waits_until_ns : lease->asked_ns + l->expire_ns;
    if (now >= due) {
      tc_metric_add(&l->metrics.leases_expired_total, 1);
      end(l, lease, TB_NOTFOUND, unknown);
    } else if (due - now < sleep_ns) {
      sleep_ns = due - now;
    }
  }
  return sleep_ns;
}

/* --- the thread -------------------------------------------------------------------------------- */

static bool has_work(void *self) {
  struct tc_leases *l = self;

  if (atomic_load(&l->stopping)) return true;
  for (unsigned i = 0; i < l->env.loops; i++)
    if (!tc_mailbox_is_empty(&l->inbox[i].mailbox)) return true;
  pthread_mutex_lock(&l->lock);
  bool asked = l->asks != NULL;
  pthread_mutex_unlock(&l->lock);
  return asked;
}

static void *run(void *self) {
  struct tc_leases *l = self;

  while (!atomic_load(&l->stopping)) {
    bool more = take_bundles(l);
    take_asks(l);
    uint64_t sleep_ns = keep_time(l);
    if (!more) tc_waker_sleep(&l->waker, sleep_ns, has_work, l);
  }
  return NULL;
}

/* --- public ------------------------------------------------------------------------------------ */

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
    refuse(ask, TB_IO, "the collector is shutting down");
  else
    tc_waker_wake(&l->waker);
}

bool tc_leases_post(struct tc_leases *l, unsigned loop, struct tc_bundle *bundle) {
  struct inbox *inbox = &l->inbox[loop];
  size_t len = bundle->len;

  if (atomic_fetch_add(&inbox->bytes, len) + len <= TC_LEASE_TRANSIT_BYTES &&
      tc_mailbox_post(&inbox->mailbox, bundle))
    return true;
  atomic_fetch_sub(&inbox->bytes, len);
  return false;
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
  l->window = (size_t)env->config->lease_window;
  l->memory_max = (size_t)env->config->lease_memory_max;
  l->expire_ns = env->config->lease_expire;
  l->lease = calloc(l->max, sizeof *l->lease);
  pthread_mutex_init(&l->lock, NULL);
  for (unsigned i = 0; i < env->loops; i++) {
    tc_mailbox_init(&l->inbox[i].mailbox, tc_waker_wake, &l->waker);
    atomic_init(&l->inbox[i].bytes, 0);
  }
  tb_rc rc = tc_waker_init(&l->waker, diag);
  if (rc == TB_OK && l->lease == NULL) rc = tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  if (rc != TB_OK) {
    tc_leases_free(l);
    return rc;
  }
  *out = l;
  return TB_OK;
}

/* Signals are the main thread's. */
tb_rc tc_leases_start(struct tc_leases *l, struct tb_diag *diag) {
  sigset_t all, before;

  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int rv = pthread_create(&l->thread, NULL, run, l);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
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
  tc_waker_wake(&l->waker);
  pthread_join(l->thread, NULL);
  l->started = false;

  pthread_mutex_lock(&l->lock);
  l->closed = true;
  struct tc_lease_ask *ask = TB_MOVE(l->asks), *next;
  pthread_mutex_unlock(&l->lock);
  for (; ask != NULL; ask = next) {
    next = ask->next;
    refuse(ask, TB_IO, "the collector is shutting down");
  }
  for (struct lease *lease = l->lease; lease < l->lease + l->max; lease++)
    if (lease->waiting != NULL)
      refuse(TB_MOVE(lease->waiting), TB_IO, "the collector is shutting down");
}

void tc_leases_free(struct tc_leases *l) {
  struct tc_bundle *bundle;

  if (l == NULL) return;
  assert(!l->started && "stopped first");
  for (unsigned i = 0; i < l->env.loops; i++)
    while ((bundle = take_from(&l->inbox[i])) != NULL) free(bundle);
  for (size_t i = 0; l->lease != NULL && i < l->max; i++)
    if (l->lease[i].id != 0) tc_lease_window_fini(&l->lease[i].window);
  tc_waker_fini(&l->waker);
  pthread_mutex_destroy(&l->lock);
  free(l->lease);
  free(l);
}
