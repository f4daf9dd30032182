/* SPDX-License-Identifier: Apache-2.0 */
/* The leases' thread between scripted loops and readers. The test's own thread plays all loops
 * and all workers. */
#include <criterion/criterion.h>
#include <limits.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/lease/broker.h"
#include "support/patience.h"
#include "tls/authority.h"

enum { LOOPS = 2, ORDERS_MAX = 256 };

static struct tc_config config;
static struct tc_leases *leases;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
  unsigned loop;
  struct tc_event_tap_order order;
} orders[ORDERS_MAX];
static size_t n_orders;
static bool loops_are_full;

struct reader {
  struct tc_lease_ask ask;
  bool answered;
  struct tc_lease_answer answer;
  char error[200];
  uint64_t first_number, events;
};

static bool take_order(void *self, unsigned loop, struct tc_event_tap_order *order) {
  (void)self;
  pthread_mutex_lock(&lock);
  bool full = loops_are_full || n_orders == ORDERS_MAX;
  if (!full) {
    orders[n_orders].loop = loop;
    orders[n_orders++].order = *order;
    free(order);
  }
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return !full;
}

static void take_answer(struct tc_lease_ask *ask, const struct tc_lease_answer *answer) {
  struct reader *r = (struct reader *)ask;
  const struct tc_bundle *b = answer->bundles;

  pthread_mutex_lock(&lock);
  r->answer = *answer;
  if (answer->error != NULL) strncpy(r->error, answer->error, sizeof r->error - 1);
  if (answer->n > 0) r->first_number = b->number;
  r->events = 0;
  for (size_t i = 0; i < answer->n; i++, b = b->next) r->events += b->events;
  r->answered = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* Waits for a change. The caller holds the lock. */
static void wait_change(void) {
  struct timespec until;

  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += TT_PATIENCE_S;
  cr_assert_eq(pthread_cond_timedwait(&changed, &lock, &until), 0, "nothing happened");
}

static void wait_answer(struct reader *r) {
  pthread_mutex_lock(&lock);
  while (!r->answered) wait_change();
  pthread_mutex_unlock(&lock);
}

static void wait_orders(size_t n) {
  pthread_mutex_lock(&lock);
  while (n_orders < n) wait_change();
  pthread_mutex_unlock(&lock);
}

static void ask(struct reader *r, enum tc_lease_ask_kind kind) {
  r->answered = false;
  r->ask.kind = kind;
  r->ask.answer = take_answer;
  tc_leases_ask(leases, &r->ask);
}

static void post(unsigned loop, uint64_t lease, bool ready, size_t len, uint64_t events) {
  struct tc_bundle *b = tc_bundle_new(lease, len);

  b->ready = ready;
  b->events = events;
  if (!tc_leases_post(leases, loop, b)) {
    tc_bundle_free(b);
    cr_assert_fail("no room");
  }
}

static uint64_t open_lease(struct reader *r) {
  size_t before = n_orders;

  ask(r, TC_LEASE_OPEN);
  wait_orders(before + LOOPS);
  for (unsigned i = 0; i < LOOPS; i++) post(i, orders[before].order.lease, true, 0, 0);
  wait_answer(r);
  cr_assert_eq(r->answer.rc, TB_OK);
  return r->answer.lease;
}

static void next(struct reader *r, uint64_t lease, uint64_t after, unsigned wait_ms) {
  r->ask = (struct tc_lease_ask){
    .lease = lease, .after = after, .wait_ms = wait_ms, .bytes_max = 1 << 20
  };
  ask(r, TC_LEASE_NEXT);
}

static struct tc_revocations *revoked;

static void start(void) {
  struct tb_diag diag;
  struct tc_leases_env env = { &config, LOOPS, NULL, take_order, revoked };

  tb_diag_clear(&diag);
  cr_assert_eq(tc_leases_new(&env, &diag, &leases), TB_OK);
  cr_assert_eq(tc_leases_start(leases, &diag), TB_OK);
}

static void init(void) {
  tc_config_init(&config);
  config.lease_max = 3;
  config.lease_window = 1 << 20;
  config.lease_memory_max = 2 << 20;
}

static void fini(void) {
  tc_leases_stop(leases);
  tc_leases_free(leases);
  tc_config_fini(&config);
}

TestSuite(leases, .init = init, .fini = fini);

Test(leases, a_lease_is_open_when_every_loop_knows_it) {
  struct reader r = { 0 };

  start();
  ask(&r, TC_LEASE_OPEN);
  wait_orders(LOOPS);
  cr_assert_not(orders[0].order.remove);
  cr_assert_eq(orders[0].order.lease, orders[1].order.lease);
  cr_assert_neq(orders[0].loop, orders[1].loop);
  post(0, orders[0].order.lease, true, 0, 0);
  /* A request after it shows that the first loop's answer alone was not enough. */
  struct reader other = { 0 };
  next(&other, 4711, 0, 0);
  wait_answer(&other);
  cr_assert_eq(other.answer.rc, TB_NOTFOUND);
  cr_assert_not(r.answered);
  post(1, orders[0].order.lease, true, 0, 0);
  wait_answer(&r);
  cr_assert_eq(r.answer.lease, orders[0].order.lease);
  cr_assert_eq(r.answer.window_bytes, 1 << 20);
}

Test(leases, a_question_waits_for_the_first_bundle) {
  struct reader r = { 0 };

  start();
  uint64_t lease = open_lease(&r);
  cr_assert_eq(tc_leases_metrics(leases)->leases_polled, 0);
  next(&r, lease, 0, 20000);
  post(1, lease, false, 100, 9);
  wait_answer(&r);
  cr_assert_eq(tc_leases_metrics(leases)->leases_polled, 1);
  cr_assert_eq(r.answer.n, 1);
  cr_assert_eq(r.events, 9);
  cr_assert_eq(r.first_number, 1);
  next(&r, lease, 1, 10);
  wait_answer(&r);
  cr_assert_eq(r.answer.rc, TB_OK);
  cr_assert_eq(r.answer.n, 0, "nothing came in time");
}

/* Returns a certificate of an authority in dir, as a reader's chain. */
static STACK_OF(X509) * chain_of(const char *dir, const char *name) {
  STACK_OF(X509) *chain = sk_X509_new_null();
  char path[128];

  snprintf(path, sizeof path, "%s/%s.pem", dir, name);
  FILE *f = fopen(path, "r");
  cr_assert_not_null(f, "%s", path);
  sk_X509_push(chain, PEM_read_X509(f, NULL, NULL, NULL));
  fclose(f);
  return chain;
}

static void revoke_by_name(const char *dir, const char *name) {
  struct tc_certs_revoked done;
  STACK_OF(X509_CRL) * lists;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_revoke(dir, name, 0, &diag, &done), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_revocations_read(revoked, &diag, &lists), TB_OK, "%s", diag.text);
  tc_revocations_take(revoked, lists);
}

Test(leases, that_of_a_revoked_reader_ends_and_others_go_on) {
  struct reader bad = { 0 }, good = { 0 };
  char dir[] = "/tmp/tc_leases_XXXXXX", list[64], ca[64], command[64];
  struct tc_cert_days days = { 0 };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_not_null(mkdtemp(dir));
  snprintf(list, sizeof list, "%s/crl.pem", dir);
  snprintf(ca, sizeof ca, "%s/ca.pem", dir);
  cr_assert_eq(tc_certs_init(dir, days, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_revocations_new(list, true, ca, &diag, &revoked), TB_OK, "%s", diag.text);
  start();
  bad.ask.reader = chain_of(dir, "reader");
  good.ask.reader = chain_of(dir, "agent");
  uint64_t ends = open_lease(&bad), stays = open_lease(&good);
  next(&bad, ends, 0, 20000); /* carries no certificate: the opener's certificate is not kept */
  next(&good, stays, 0, 20000);

  struct reader again = { 0 };
  again.ask = (struct tc_lease_ask){ .lease = ends, .wait_ms = 20000, .bytes_max = 1 << 20 };
  again.ask.reader = chain_of(dir, "reader");
  ask(&again, TC_LEASE_NEXT);
  wait_answer(&bad);
  revoke_by_name(dir, "reader");
  tc_leases_recheck(leases);
  wait_answer(&again);
  cr_expect_eq(again.answer.rc, TB_REFUSED);
  cr_expect_str_eq(again.error, "the reader's certificate was revoked");
  cr_expect_eq(tc_leases_metrics(leases)->leases, 1);
  cr_expect_eq(tc_leases_metrics(leases)->revoked_ended_total, 1);

  /* A reader whose request was sent before the revocation, and is handled only now. */
  struct reader late = { 0 };
  late.ask.reader = chain_of(dir, "reader");
  ask(&late, TC_LEASE_OPEN);
  wait_answer(&late);
  cr_expect_eq(late.answer.rc, TB_REFUSED);
  sk_X509_pop_free(late.ask.reader, X509_free);
  post(0, stays, false, 100, 9);
  wait_answer(&good);
  cr_expect_eq(good.answer.n, 1);
  tc_leases_stop(leases);
  tc_revocations_release(revoked);
  snprintf(command, sizeof command, "rm -r %s", dir);
  cr_assert_eq(system(command), 0);
}

Test(leases, the_newer_of_two_questions_is_the_one_that_waits) {
  struct reader a = { 0 }, b = { 0 };

  start();
  uint64_t lease = open_lease(&a);
  next(&a, lease, 0, 20000);
  next(&b, lease, 0, 20000);
  wait_answer(&a);
  cr_assert_eq(a.answer.n, 0);
  post(0, lease, false, 100, 9);
  wait_answer(&b);
  cr_assert_eq(b.answer.n, 1);
}

Test(leases, a_lease_that_nobody_polls_expires_and_loops_are_told) {
  struct reader r = { 0 };

  config.lease_expire = 20000000;
  start();
  uint64_t lease = open_lease(&r);
  wait_orders(2 * LOOPS);
  for (size_t i = LOOPS; i < (size_t)2 * LOOPS; i++) {
    cr_assert(orders[i].order.remove);
    cr_assert_eq(orders[i].order.lease, lease);
  }
  next(&r, lease, 0, 0);
  wait_answer(&r);
  cr_assert_eq(r.answer.rc, TB_NOTFOUND);
  cr_assert_not_null(
      strstr(r.error, "the lease expired: nobody asked for it during lease.expire, "), "%s",
      r.error);
  cr_assert_eq(tc_leases_metrics(leases)->leases_expired_total, 1);
  cr_assert_eq(tc_leases_metrics(leases)->leases, 0);
  cr_assert_eq(tc_leases_metrics(leases)->leases_polled, 0);
}

Test(leases, a_loop_that_missed_the_end_is_told_again) {
  struct reader r = { 0 };

  start();
  uint64_t lease = open_lease(&r);
  r.ask = (struct tc_lease_ask){ .lease = lease };
  ask(&r, TC_LEASE_RELEASE);
  wait_answer(&r);
  cr_assert_eq(r.answer.rc, TB_OK);
  wait_orders(2 * LOOPS);
  post(1, lease, false, 100, 9);
  wait_orders(2 * LOOPS + 1);
  cr_assert(orders[2 * LOOPS].order.remove);
  cr_assert_eq(orders[2 * LOOPS].loop, 1);
}

static void release(struct reader *r, uint64_t lease) {
  r->ask = (struct tc_lease_ask){ .lease = lease, .owner = r->ask.owner };
  ask(r, TC_LEASE_RELEASE);
  wait_answer(r);
}

Test(leases, one_that_was_released_is_known_as_such_to_its_reader) {
  struct reader r = { .ask.owner = 7 }, waits = { 0 }, other = { .ask.owner = 8 };

  start();
  uint64_t lease = open_lease(&r);
  waits.ask = (struct tc_lease_ask){ .lease = lease, .owner = 7, .wait_ms = 20000 };
  ask(&waits, TC_LEASE_NEXT);
  release(&r, lease);
  cr_assert_eq(r.answer.rc, TB_OK);
  wait_answer(&waits);
  cr_assert_eq(waits.answer.rc, TB_NOTFOUND);
  cr_assert_str_eq(waits.error, "its reader ended the lease");
  release(&r, lease);
  cr_assert_eq(r.answer.rc, TB_NOTFOUND);
  cr_assert_not_null(strstr(r.error, "its reader ended the lease, "), "%s", r.error);
  release(&other, lease);
  cr_assert_eq(other.answer.rc, TB_NOTFOUND);
  cr_assert_str_eq(other.error, "no such lease: it ended long ago, or the collector was restarted");
}

Test(leases, there_are_only_so_many) {
  struct reader r[3] = { 0 }, one_more = { 0 };

  start();
  for (int i = 0; i < 3; i++) open_lease(&r[i]);
  ask(&one_more, TC_LEASE_OPEN);
  wait_answer(&one_more);
  cr_assert_eq(one_more.answer.rc, TB_BUSY);
  cr_assert_not_null(strstr(one_more.error, "lease.max"));
  r[0].ask = (struct tc_lease_ask){ .lease = r[0].answer.lease };
  ask(&r[0], TC_LEASE_RELEASE);
  wait_answer(&r[0]);
  open_lease(&one_more);
}

Test(leases, one_owner_has_a_share) {
  struct reader r[2] = { 0 }, one_more = { 0 }, other = { .ask.owner = 7 };

  config.lease_owner_max = 2;
  start();
  for (int i = 0; i < 2; i++) open_lease(&r[i]);
  ask(&one_more, TC_LEASE_OPEN);
  wait_answer(&one_more);
  cr_assert_eq(one_more.answer.rc, TB_BUDGET);
  cr_assert_not_null(strstr(one_more.error, "lease.owner_max"));
  open_lease(&other);
}

Test(leases, loops_that_take_no_order_refuse_the_lease) {
  struct reader r = { 0 };

  start();
  loops_are_full = true;
  ask(&r, TC_LEASE_OPEN);
  wait_answer(&r);
  cr_assert_eq(r.answer.rc, TB_BUSY);
  cr_assert_eq(tc_leases_metrics(leases)->leases, 0);
}

Test(leases, another_owner_neither_reads_nor_releases_a_lease) {
  struct reader r = { .ask.owner = 7 }, other = { 0 };

  start();
  uint64_t lease = open_lease(&r);
  post(0, lease, false, 100, 9);
  next(&other, lease, 0, 20000);
  wait_answer(&other);
  cr_assert_eq(other.answer.rc, TB_REFUSED);
  cr_assert_str_eq(other.error, "the lease belongs to another reader");
  other.ask = (struct tc_lease_ask){ .lease = lease, .owner = 8 };
  ask(&other, TC_LEASE_RELEASE);
  wait_answer(&other);
  cr_assert_eq(other.answer.rc, TB_REFUSED);
  r.ask = (struct tc_lease_ask){ .lease = lease, .owner = 7, .bytes_max = 1 << 20 };
  ask(&r, TC_LEASE_NEXT);
  wait_answer(&r);
  cr_assert_eq(r.events, 9);
}

Test(leases, a_bundle_that_was_never_sent_is_no_place_to_go_on) {
  struct reader r = { 0 };

  start();
  uint64_t lease = open_lease(&r);
  post(0, lease, false, 100, 9);
  next(&r, lease, 17, 20000);
  wait_answer(&r);
  cr_assert_eq(r.answer.rc, TB_PROTOCOL);
  cr_assert_str_eq(r.error, "after=17 is not a bundle to continue from: ask with the last number "
                            "that you have, after=0");
  next(&r, lease, 0, 20000);
  wait_answer(&r);
  cr_assert_eq(r.events, 9, "nothing is lost by it");
  next(&r, lease, 17, 20000);
  wait_answer(&r);
  cr_assert_str_eq(r.error, "after=17 is not a bundle to continue from: ask with the last number "
                            "that you have, after=0 to after=1");
}

Test(leases, a_reader_that_has_left_is_answered_soon_and_its_lease_stays) {
  struct reader r = { 0 };

  start();
  uint64_t lease = open_lease(&r);
  next(&r, lease, 0, UINT_MAX); /* longer than the test has patience */
  tc_leases_leave(leases, &r.ask);
  wait_answer(&r);
  cr_assert_eq(r.answer.n, 0);
  post(0, lease, false, 100, 9);
  next(&r, lease, 0, 20000);
  wait_answer(&r);
  cr_assert_eq(r.events, 9);
}

Test(leases, a_lease_whose_reader_left_before_it_knew_of_it_ends) {
  struct reader r = { 0 };

  start();
  ask(&r, TC_LEASE_OPEN);
  wait_orders(LOOPS);
  tc_leases_leave(leases, &r.ask);
  wait_answer(&r);
  cr_assert_neq(r.answer.rc, TB_OK);
  cr_assert_eq(tc_leases_metrics(leases)->leases, 0);
}

Test(leases, all_together_keep_no_more_than_they_may_and_the_greediest_pays) {
  struct reader r[3] = { 0 };
  uint64_t lease[3];

  config.lease_memory_max = 1 << 20;
  start();
  for (int i = 0; i < 3; i++) lease[i] = open_lease(&r[i]);
  for (int n = 0; n < 40; n++) { /* two modest readers, and one that asks for four times as much */
    post(0, lease[0], false, 8 << 10, 1);
    post(1, lease[1], false, 8 << 10, 1);
    for (int k = 0; k < 4; k++) post((unsigned)k % 2, lease[2], false, 8 << 10, 1);
  }
  for (int i = 0; i < 2; i++) {
    do {
      next(&r[i], lease[i], 0, 0);
      wait_answer(&r[i]);
    } while (r[i].events < 40 && r[i].answer.lost == 0);
    cr_assert_eq(r[i].events, 40, "a reader within its share loses nothing");
    cr_assert_eq(r[i].answer.lost, 0);
  }
  do {
    next(&r[2], lease[2], 0, 0);
    wait_answer(&r[2]);
    cr_assert_leq(tc_leases_metrics(leases)->lease_bytes, 1 << 20);
  } while (r[2].events + r[2].answer.lost < 160);
  cr_assert_eq(r[2].events + r[2].answer.lost, 160);
  cr_assert_gt(r[2].answer.lost, 0);
  cr_assert_eq(tc_leases_metrics(leases)->lease_events_lost_total, r[2].answer.lost);
}

Test(leases, what_is_on_the_way_from_a_loop_is_bounded) {
  size_t len = 1 << 20, sent = 0;

  struct tc_leases_env env = { &config, LOOPS, NULL, take_order, NULL };
  struct tb_diag diag;
  cr_assert_eq(tc_leases_new(&env, &diag, &leases), TB_OK); /* not started, so nothing is taken */
  for (;;) {
    struct tc_bundle *b = tc_bundle_new(0, len);
    if (!tc_leases_post(leases, 0, b)) {
      tc_bundle_free(b);
      break;
    }
    sent += len;
  }
  cr_assert_eq(sent, TC_LEASE_TRANSIT_BYTES);
}

Test(leases, who_waits_at_the_end_is_told) {
  struct reader r = { 0 }, opening = { 0 }, late = { 0 };

  start();
  uint64_t lease = open_lease(&r);
  next(&r, lease, 0, 20000);
  ask(&opening, TC_LEASE_OPEN);
  tc_leases_stop(leases);
  wait_answer(&r);
  wait_answer(&opening);
  cr_assert_eq(r.answer.rc, TB_IO);
  cr_assert_eq(opening.answer.rc, TB_IO);
  next(&late, lease, 0, 20000);
  cr_assert(late.answered);
  cr_assert_eq(late.answer.rc, TB_IO);
}
