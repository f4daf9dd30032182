/* SPDX-License-Identifier: Apache-2.0 */
/* A loop's tap between a real trace and the leases' thread. The test's thread acts as the loop, the reader and the workers. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "collector/lease/event_tap.h"
#include "online/trace/reader.h"
#include "support/patience.h"

enum { ORDERS_MAX = 16 };

static struct tc_config config;
static struct tc_leases *leases;
static struct tc_event_tap *tap;
static struct tc_tap_event *tapped;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct tc_event_tap_order *orders[ORDERS_MAX];
static size_t n_orders;

static unsigned char *trace;
static size_t trace_len;
static const unsigned char stream_id[16] = "sixteen bytes id";
static const struct tc_tap_event_about shop = { stream_id, "shop", "host:1" };

/* --- the leases' side -------------------------------------------------------------------------- */

static bool take_order(void *self, unsigned loop, struct tc_event_tap_order *order) {
  (void)self, (void)loop;
  pthread_mutex_lock(&lock);
  orders[n_orders++] = order;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return true;
}

struct reader {
  struct tc_lease_ask ask;
  bool answered;
  tb_rc rc;
  uint64_t lease, last, events, lost;
  size_t n;
};

static void take_answer(struct tc_lease_ask *ask, const struct tc_lease_answer *answer) {
  struct reader *r = (struct reader *)ask;
  const struct tc_bundle *b = answer->bundles;

  pthread_mutex_lock(&lock);
  r->rc = answer->rc;
  r->n = answer->n;
  if (ask->kind == TC_LEASE_OPEN) r->lease = answer->lease;
  r->lost += answer->lost;
  for (size_t i = 0; i < answer->n; i++, b = b->next) {
    r->events += b->events;
    r->last = b->number;
    if (i + 1 < answer->n) r->lost += b->next->position - (b->position + b->events);
  }
  r->answered = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* Passes ordered events to the tap until the reader has its answer. */
static void ask(struct reader *r, enum tc_lease_ask_kind kind) {
  r->answered = false;
  r->ask.kind = kind;
  r->ask.answer = take_answer;
  tc_leases_ask(leases, &r->ask);
  pthread_mutex_lock(&lock);
  while (!r->answered || n_orders > 0) {
    struct timespec until;
    if (n_orders > 0) {
      tc_event_tap_order(tap, orders[--n_orders]);
      continue;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TT_PATIENCE_S;
    cr_assert_eq(pthread_cond_timedwait(&changed, &lock, &until), 0, "no answer");
  }
  pthread_mutex_unlock(&lock);
}

static void open_lease(struct reader *r, const char *service, const char *kind) {
  *r = (struct reader){ 0 };
  snprintf(r->ask.filter.service, sizeof r->ask.filter.service, "%s", service);
  if (kind == NULL) {
    to_filter_all(&r->ask.filter.events);
  } else {
    to_filter_none(&r->ask.filter.events);
    cr_assert(to_filter_add(&r->ask.filter.events, kind));
  }
  ask(r, TC_LEASE_OPEN);
  cr_assert_eq(r->rc, TB_OK);
}

/* Reads until n events have arrived or are known to be lost. */
static void read_until(struct reader *r, uint64_t n) {
  while (r->events + r->lost < n) {
    r->ask = (struct tc_lease_ask){
      .lease = r->lease, .after = r->last, .wait_ms = 20000, .bytes_max = 1 << 20
    };
    ask(r, TC_LEASE_NEXT);
    cr_assert_eq(r->rc, TB_OK);
    cr_assert_gt(r->n, 0, "nothing came: %lu of %lu", r->events, n);
  }
}

/* --- the loop's side --------------------------------------------------------------------------- */

static struct {
  uint64_t gen, until; /* where to stop: at the begin of this generation */
  uint64_t events, logs, blocks;
  void (*in_the_middle)(void);
} run;

static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  (void)self;
  if (gen == NULL) return TB_OK;
  if (to_generation_number(gen) != run.gen) {
    if (tapped != NULL) tc_tap_event_end(tapped);
    run.gen = to_generation_number(gen);
    if (run.gen == run.until) return TB_END;
    tc_event_tap_begin(tap, &shop, &tapped);
  } else if (run.in_the_middle != NULL) {
    run.in_the_middle();
    run.in_the_middle = NULL;
  }
  run.events += n;
  for (size_t i = 0; i < n; i++) {
    run.blocks += events[i].type == TW_EV_GO_BLOCK;
    run.logs += events[i].type == TW_EV_USER_LOG;
  }
  if (tapped != NULL) tc_tap_event_events(tapped, gen, events, n);
  return TB_OK;
}

/* Orders the trace's generations below `until`; 0: all. */
static void order(uint64_t until) {
  struct tb_mem mem;
  struct to_reader *reader;

  run.gen = run.events = run.logs = run.blocks = 0;
  run.until = until;
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_reader_new(&mem, &(struct to_limits){ 0 }, 0,
                             (struct to_event_sink){ NULL, on_events }, NULL, &reader),
               TB_OK);
  cr_assert_eq(to_reader_read(reader, trace, trace_len), until == 0 ? TB_OK : TB_END);
  if (until == 0 && tapped != NULL) tc_tap_event_end(tapped);
  to_reader_free(reader);
}

static void load(void) {
  static unsigned char packed[1 << 20];
  const char *source = getenv("TC_SOURCE_DIR");
  char path[512];

  snprintf(path, sizeof path, "%s/tests/data/g26-gens.trace.zst", source != NULL ? source : ".");
  FILE *file = fopen(path, "rb");
  cr_assert_not_null(file, "%s", path);
  size_t n = fread(packed, 1, sizeof packed, file);
  fclose(file);
  trace = malloc(16 << 20);
  trace_len = ZSTD_decompress(trace, 16 << 20, packed, n);
  cr_assert_not(ZSTD_isError(trace_len));
}

static void make(void) {
  struct tc_leases_env env = { &config, 1, NULL, take_order, NULL };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_leases_new(&env, &diag, &leases), TB_OK);
  cr_assert_eq(tc_event_tap_new(leases, 0, &tap), TB_OK);
  cr_assert_eq(tc_leases_start(leases, &diag), TB_OK);
}

static void init(void) {
  tc_config_init(&config);
  load();
}

static void let_thread_go(void);

static void fini(void) {
  let_thread_go(); /* a failed case may still hold the thread */
  tc_leases_stop(leases);
  tc_tap_event_free(tapped);
  tc_event_tap_free(tap);
  tc_leases_free(leases);
  for (size_t i = 0; i < n_orders; i++) free(orders[i]);
  tc_config_fini(&config);
  free(trace);
}

TestSuite(tap, .init = init, .fini = fini);

Test(tap, a_stream_that_nobody_asks_for_is_not_tapped) {
  struct reader r;

  make();
  order(3);
  cr_assert_null(tapped);
  open_lease(&r, "other", NULL);
  order(3);
  cr_assert_null(tapped);
}

Test(tap, each_lease_gets_its_own_events_and_all_of_them) {
  struct reader every, blocks, logs;

  make();
  open_lease(&every, "shop", NULL);
  open_lease(&blocks, "", "GoBlock");
  open_lease(&logs, "shop", "logs");
  order(0);
  cr_assert_gt(run.blocks, 0);
  cr_assert_gt(run.logs, 0);
  read_until(&every, run.events);
  read_until(&blocks, run.blocks);
  read_until(&logs, run.logs);
  cr_assert_eq(every.events, run.events);
  cr_assert_eq(blocks.events, run.blocks);
  cr_assert_eq(logs.events, run.logs);
  cr_assert_eq(every.lost + blocks.lost + logs.lost, 0);
  cr_assert_eq(tc_leases_metrics(leases)->lease_events_total, run.events + run.blocks + run.logs);
}

static struct reader late;
static uint64_t events_before;

static void open_late(void) {
  open_lease(&late, "shop", NULL);
  events_before = run.events;
}

Test(tap, a_lease_begins_with_a_whole_generation) {
  uint64_t first, all;

  make();
  order(2);
  first = run.events;
  order(0);
  all = run.events;
  run.in_the_middle = open_late;
  order(0);
  cr_assert_leq(events_before, first, "it was opened within the first generation");
  read_until(&late, all - first);
  cr_assert_eq(late.events, all - first);
  cr_assert_eq(late.lost, 0);
}

static void release_late(void) {
  late.ask = (struct tc_lease_ask){ .lease = late.lease };
  ask(&late, TC_LEASE_RELEASE);
}

Test(tap, a_lease_may_end_in_the_middle_of_a_generation) {
  struct reader other;

  make();
  open_lease(&late, "shop", NULL);
  open_lease(&other, "shop", "GoBlock");
  run.in_the_middle = release_late;
  order(0);
  read_until(&other, run.blocks);
  cr_assert_eq(other.events, run.blocks);
  late = other;
  release_late();
  order(3);
  cr_assert_null(tapped, "nobody is left");
}

static bool thread_is_held, thread_may_go;

static void let_thread_go(void) {
  pthread_mutex_lock(&lock);
  thread_may_go = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void hold_thread(struct tc_lease_ask *held, const struct tc_lease_answer *answer) {
  (void)held, (void)answer;
  pthread_mutex_lock(&lock);
  thread_is_held = true;
  pthread_cond_broadcast(&changed);
  while (!thread_may_go) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

Test(tap, what_finds_no_room_on_the_way_is_lost_and_told) {
  struct tc_lease_ask nothing = { .kind = TC_LEASE_NEXT, .answer = hold_thread };
  struct reader r;
  uint64_t all = 0;

  config.lease_window = 1 << 30;
  make();
  open_lease(&r, "shop", NULL);
  tc_leases_ask(leases, &nothing);
  pthread_mutex_lock(&lock);
  while (!thread_is_held) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 60; i++) { /* twice as many as may be on their way */
    order(0);
    all += run.events;
  }
  let_thread_go();
  do { /* as the loop does; the last loss is reported when there is room */
    tc_event_tap_tick(tap);
    r.ask = (struct tc_lease_ask){ .lease = r.lease, .after = r.last, .bytes_max = 1 << 20 };
    ask(&r, TC_LEASE_NEXT);
    cr_assert_eq(r.rc, TB_OK);
  } while (r.events + r.lost < all);
  cr_assert_eq(r.events + r.lost, all);
  cr_assert_gt(r.lost, 0);
  cr_assert_gt(r.events, 0);
  cr_assert_eq(tc_leases_metrics(leases)->lease_events_lost_total, r.lost);
}
