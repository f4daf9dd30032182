/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed table of leases; each has at most one waiting ask. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "collector/lease/private.h"

enum {
  OPEN_MS = 10000, /* a loop takes an order within a slice or two */
  SLEEP_NS_MAX = 1000000000,
};

/* --- answers ----------------------------------------------------------------------------------- */

void tc__lease_refuse(struct tc_lease_ask *ask, tb_rc rc, const char *error) {
  struct tc_lease_answer answer = { .rc = rc, .error = error };

  ask->answer(ask, &answer);
}

static void answer_bundles(struct tc_lease_ask *ask, const struct tc_bundle *bundles, size_t n,
                           uint64_t lost) {
  struct tc_lease_answer answer = { .bundles = bundles, .n = n, .lost = lost };

  ask->answer(ask, &answer);
}

/* --- windows ----------------------------------------------------------------------------------- */

static struct tc__lease *find_lease(struct tc_leases *l, uint64_t id) {
  for (struct tc__lease *lease = l->lease; lease < l->lease + l->max; lease++)
    if (lease->id == id && id != 0) return lease;
  return NULL;
}

static struct tc__lease *largest(struct tc_leases *l) {
  struct tc__lease *most = l->lease;

  for (struct tc__lease *lease = l->lease; lease < l->lease + l->max; lease++)
    if (lease->window.bytes > most->window.bytes) most = lease;
  return most;
}

/* Updates the totals after a change of the window. */
static void account(struct tc_leases *l, const struct tc__lease *lease, size_t bytes_before,
                    uint64_t lost_before) {
  l->bytes += lease->window.bytes - bytes_before;
  atomic_store_explicit(&l->metrics.lease_bytes, l->bytes, memory_order_relaxed);
  tc_metric_add(&l->metrics.lease_events_lost_total, lease->window.lost - lost_before);
}

static void add_bundle(struct tc_leases *l, struct tc__lease *lease, struct tc_bundle *bundle) {
  size_t bytes = lease->window.bytes;
  uint64_t lost = lease->window.lost;

  tc_metric_add(&l->metrics.lease_events_total, bundle->events);
  tc_lease_window_add(&lease->window, bundle);
  account(l, lease, bytes, lost);
  while (l->bytes > l->memory_max) {
    struct tc__lease *most = largest(l);
    bytes = most->window.bytes;
    lost = most->window.lost;
    if (!tc_lease_window_drop(&most->window)) break;
    account(l, most, bytes, lost);
  }
}

/* `after` is wrong: the error names the numbers that are right. */
static void refuse_place(const struct tc__lease *lease, struct tc_lease_ask *ask) {
  const struct tc_lease_window *w = &lease->window;
  char until[40] = "", text[160];

  if (w->sent.number != w->acked.number)
    snprintf(until, sizeof until, " to after=%" PRIu64, w->sent.number);
  snprintf(text, sizeof text,
           "after=%" PRIu64
           " is not a bundle to continue from: ask with the last number that you have, "
           "after=%" PRIu64 "%s",
           ask->after, w->acked.number, until);
  tc__lease_refuse(ask, TB_PROTOCOL, text);
}

/* Answers the lease's ask if there is a bundle or an error. */
static void try_answer(struct tc_leases *l, struct tc__lease *lease) {
  size_t bytes = lease->window.bytes, n;
  const struct tc_bundle *bundles;
  struct tc_lease_ask *ask = lease->waiting;
  uint64_t lost;
  tb_rc rc = tc_lease_window_next(&lease->window, ask->after, ask->bytes_max, &bundles, &n, &lost);

  account(l, lease, bytes, lease->window.lost);
  if (rc == TB_OK && n == 0) return;
  lease->waiting = NULL;
  lease->asked_ns = tc_mono_ns();
  if (rc == TB_OK)
    answer_bundles(ask, bundles, n, lost);
  else
    refuse_place(lease, ask);
}

/* --- leases begin and end ---------------------------------------------------------------------- */

void tc_event_tap_order_free(struct tc_event_tap_order *order) {
  if (order == NULL) return;
  TB_MAGIC_END(order, TC_TAP_ORDER_MAGIC);
  free(order);
}

static bool give_order(struct tc_leases *l, unsigned loop, const struct tc_event_tap_order *order) {
  struct tc_event_tap_order *copy = malloc(sizeof *copy);

  if (copy == NULL) return false;
  *copy = *order;
  copy->magic = TC_TAP_ORDER_MAGIC;
  if (l->env.order(l->env.self, loop, copy)) return true;
  tc_event_tap_order_free(copy);
  return false;
}

/* A loop that misses the order keeps sending bundles, and gets the order again for each. */
static void call_off(struct tc_leases *l, uint64_t id) {
  struct tc_event_tap_order order = { .remove = true, .lease = id };

  for (unsigned i = 0; i < l->env.loops; i++) (void)give_order(l, i, &order);
}

static void add_end(struct tc_leases *l, const struct tc__lease *lease, const char *why) {
  l->ends[l->n_ends++ % TC__LEASE_ENDS] =
      (struct tc__lease_end){ lease->id, lease->owner, tc_mono_ns(), why };
}

/* Answers a waiting reader last, when the lease has really ended. */
static void end_lease(struct tc_leases *l, struct tc__lease *lease, tb_rc rc, const char *why) {
  struct tc_lease_ask *waiting = TB_MOVE(lease->waiting);
  size_t bytes = lease->window.bytes;

  call_off(l, lease->id);
  add_end(l, lease, why);
  tc_lease_window_fini(&lease->window);
  sk_X509_pop_free(TB_MOVE(lease->reader), X509_free);
  account(l, lease, bytes, lease->window.lost);
  lease->id = 0;
  tc_metric_sub(&l->metrics.leases, 1);
  if (lease->polled) tc_metric_sub(&l->metrics.leases_polled, 1);
  if (waiting != NULL) tc__lease_refuse(waiting, rc, why);
}

static const char revoked[] = "the reader's certificate was revoked";

static bool is_revoked(const struct tc_leases *l, const STACK_OF(X509) * reader) {
  return tc_revocations_have_any(l->env.revoked, reader);
}

void tc__lease_recheck(struct tc_leases *l) {
  for (struct tc__lease *lease = l->lease; lease < l->lease + l->max; lease++) {
    if (lease->id == 0 || !is_revoked(l, lease->reader)) continue;
    tc_metric_add(&l->metrics.revoked_ended_total, 1);
    end_lease(l, lease, TB_REFUSED, revoked);
  }
}

static void take_reader(struct tc__lease *lease, struct tc_lease_ask *ask) {
  sk_X509_pop_free(lease->reader, X509_free);
  lease->reader = TB_MOVE(ask->reader);
}

static const char busy[] = "the collector is too busy for another lease";

static struct tc__lease *take_free(struct tc_leases *l) {
  for (struct tc__lease *lease = l->lease; lease < l->lease + l->max; lease++) {
    if (lease->id != 0) continue;
    *lease = (struct tc__lease){ .asked_ns = tc_mono_ns() };
    while (lease->id == 0 || find_lease(l, lease->id) != lease)
      if (getrandom(&lease->id, sizeof lease->id, 0) != sizeof lease->id) return NULL;
    return lease;
  }
  return NULL;
}

static size_t count_of(const struct tc_leases *l, uint64_t owner) {
  size_t n = 0;

  for (const struct tc__lease *lease = l->lease; lease < l->lease + l->max; lease++)
    n += lease->id != 0 && lease->owner == owner;
  return n;
}

static void ask_open(struct tc_leases *l, struct tc_lease_ask *ask) {
  struct tc_event_tap_order order = { .filter = ask->filter };
  size_t bytes = l->window;
  char text[80];

  if (count_of(l, ask->owner) >= l->owner_max) {
    snprintf(text, sizeof text, "lease.owner_max is reached: you have %zu leases", l->owner_max);
    tc__lease_refuse(ask, TB_BUDGET, text);
    return;
  }
  struct tc__lease *lease = take_free(l);
  if (lease == NULL) {
    snprintf(text, sizeof text, "lease.max is reached: there are %zu leases", l->max);
    tc__lease_refuse(ask, TB_BUSY, text);
    return;
  }
  if (ask->window_bytes != 0 && ask->window_bytes < bytes) bytes = ask->window_bytes;
  tc_lease_window_init(&lease->window, bytes);
  lease->unready = l->env.loops;
  lease->owner = ask->owner;
  take_reader(lease, ask);
  lease->waiting = ask;
  lease->waits_until_ns = lease->asked_ns + OPEN_MS * UINT64_C(1000000);
  tc_metric_add(&l->metrics.leases, 1);
  tc_metric_add(&l->metrics.leases_opened_total, 1);
  order.lease = lease->id;
  for (unsigned i = 0; i < l->env.loops; i++) {
    if (give_order(l, i, &order)) continue;
    end_lease(l, lease, TB_BUSY, busy);
    return;
  }
}

/* A loop has the lease; the last one to report opens it. */
static void take_ready(struct tc_leases *l, struct tc__lease *lease) {
  struct tc_lease_answer answer = { .lease = lease->id,
                                    .window_bytes = lease->window.bytes_max,
                                    .expire_ns = l->expire_ns };

  if (lease->unready == 0 || --lease->unready > 0) return;
  struct tc_lease_ask *ask = TB_MOVE(lease->waiting);
  lease->asked_ns = tc_mono_ns();
  ask->answer(ask, &answer);
}

/* --- messages --------------------------------------------------------------------------------- */

static const char expired[] = "the lease expired: nobody asked for it during lease.expire";

/* A lease that does not exist. Only its owner is told why it ended. */
static void refuse_unknown(const struct tc_leases *l, struct tc_lease_ask *ask) {
  char text[120] = "no such lease: it ended long ago, or the collector was restarted";

  for (size_t i = 0; i < TC__LEASE_ENDS; i++) {
    const struct tc__lease_end *end = &l->ends[i];
    if (end->why != NULL && end->id == ask->lease && end->owner == ask->owner)
      snprintf(text, sizeof text, "%s, %" PRIu64 " s ago", end->why,
               (tc_mono_ns() - end->at_ns) / UINT64_C(1000000000));
  }
  tc__lease_refuse(ask, TB_NOTFOUND, text);
}

/* Returns NULL after a refusal. */
static struct tc__lease *find_own(struct tc_leases *l, struct tc_lease_ask *ask) {
  struct tc__lease *lease = find_lease(l, ask->lease);

  if (lease == NULL || lease->unready > 0)
    refuse_unknown(l, ask);
  else if (lease->owner != ask->owner)
    tc__lease_refuse(ask, TB_REFUSED, "the lease belongs to another reader");
  else
    return lease;
  return NULL;
}

static void ask_next(struct tc_leases *l, struct tc_lease_ask *ask) {
  struct tc__lease *lease = find_own(l, ask);

  if (lease == NULL) return;
  if (!lease->polled) tc_metric_add(&l->metrics.leases_polled, 1);
  lease->polled = true;
  if (lease->waiting != NULL) answer_bundles(TB_MOVE(lease->waiting), NULL, 0, 0);
  take_reader(lease, ask);
  lease->waiting = ask;
  lease->asked_ns = tc_mono_ns();
  lease->waits_until_ns = lease->asked_ns + ask->wait_ms * UINT64_C(1000000);
  try_answer(l, lease);
}

static void ask_release(struct tc_leases *l, struct tc_lease_ask *ask) {
  struct tc_lease_answer answer = { .rc = TB_OK };
  struct tc__lease *lease = find_own(l, ask);

  if (lease == NULL) return;
  end_lease(l, lease, TB_NOTFOUND, "its reader ended the lease");
  ask->answer(ask, &answer);
}

void tc__lease_ask(struct tc_leases *l, struct tc_lease_ask *ask) {
  if (is_revoked(l, ask->reader)) { /* revoked after it asked */
    tc__lease_refuse(ask, TB_REFUSED, revoked);
    return;
  }
  switch (ask->kind) {
  case TC_LEASE_OPEN: ask_open(l, ask); break;
  case TC_LEASE_NEXT: ask_next(l, ask); break;
  case TC_LEASE_RELEASE: ask_release(l, ask); break;
  }
}

void tc__lease_bundle(struct tc_leases *l, unsigned loop, struct tc_bundle *bundle) {
  struct tc__lease *lease = find_lease(l, bundle->lease);
  struct tc_event_tap_order stop = { .remove = true, .lease = bundle->lease };

  if (lease != NULL && !bundle->ready) {
    add_bundle(l, lease, bundle);
    if (lease->waiting != NULL && lease->unready == 0) try_answer(l, lease);
    return;
  }
  if (lease != NULL)
    take_ready(l, lease);
  else
    (void)give_order(l, loop, &stop);
  tc_bundle_free(bundle);
}

/* --- time -------------------------------------------------------------------------------------- */

static void stop_waiting(struct tc_leases *l, struct tc__lease *lease, uint64_t now) {
  if (lease->unready > 0) {
    end_lease(l, lease, TB_BUSY, busy);
    return;
  }
  lease->asked_ns = now;
  answer_bundles(TB_MOVE(lease->waiting), NULL, 0, 0);
}

uint64_t tc__lease_time(struct tc_leases *l) {
  uint64_t now = tc_mono_ns(), sleep_ns = SLEEP_NS_MAX;

  for (struct tc__lease *lease = l->lease; lease < l->lease + l->max; lease++) {
    if (lease->id == 0) continue;
    if (lease->waiting != NULL &&
        (now >= lease->waits_until_ns || atomic_load(&lease->waiting->left)))
      stop_waiting(l, lease, now);
    if (lease->id == 0) continue;
    uint64_t due = lease->waiting != NULL ? lease->waits_until_ns : lease->asked_ns + l->expire_ns;
    if (now >= due) {
      tc_metric_add(&l->metrics.leases_expired_total, 1);
      end_lease(l, lease, TB_NOTFOUND, expired);
    } else if (due - now < sleep_ns) {
      sleep_ns = due - now;
    }
  }
  return sleep_ns;
}
