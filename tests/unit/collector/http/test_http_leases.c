/* SPDX-License-Identifier: Apache-2.0 */
/* Leases over HTTP: the test acts as the loops that have the events, and as the readers. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/archive.pb-c.h"
#include "support/http_reader.h"
#include "support/patience.h"

enum { LOOPS = 1, LEASES_MAX = 80, POLLERS = 20, RANDOM_READERS = 64, RANDOM_EVENTS = 400 };

#define PROTOBUF "Accept: application/protobuf\r\n"

static struct tc_config config;
static struct tc_leases *leases;
static struct tt_http *server;
static struct tt_reader readers[POLLERS], *const one = &readers[0], *const other = &readers[1];

/* Leases that the loop was informed of, in the order in which they were opened. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t told[4 * LEASES_MAX];
static size_t n_told, n_ready;

static bool take_order(void *self, unsigned loop, struct tc_event_tap_order *order) {
  (void)self, (void)loop;
  pthread_mutex_lock(&lock);
  if (!order->remove && n_told < sizeof told / sizeof told[0]) told[n_told++] = order->lease;
  pthread_mutex_unlock(&lock);
  tc_event_tap_order_free(order);
  return true;
}

static void post(uint64_t lease, bool ready, const void *bytes, size_t len, uint64_t events) {
  struct tc_bundle *b = tc_bundle_new(lease, len);

  b->ready = ready;
  b->events = events;
  if (len > 0) memcpy(b->bytes, bytes, len);
  while (!tc_leases_post(leases, 0, b)) sched_yield();
}

static void take_in_the_new(void) {
  uint64_t fresh[sizeof told / sizeof told[0]];
  size_t n = 0;

  pthread_mutex_lock(&lock);
  while (n_ready < n_told) fresh[n++] = told[n_ready++];
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; i < n; i++) post(fresh[i], true, NULL, 0, 0);
}

/* Posts one event, as a loop packs it. */
static void post_event(uint64_t lease, uint64_t generation) {
  Tracecollect__V1__EventBundle bundle = TRACECOLLECT__V1__EVENT_BUNDLE__INIT;
  Tracecollect__V1__LeasedEvent event = TRACECOLLECT__V1__LEASED_EVENT__INIT, *events = &event;
  char service[] = "shop";
  unsigned char bytes[200];

  bundle.service = service;
  bundle.generation = generation;
  bundle.n_events = 1;
  bundle.events = &events;
  event.time_ns = 4711;
  event.goroutine = -1;
  post(lease, false, bytes, tracecollect__v1__event_bundle__pack(&bundle, bytes), 1);
}

static void init(void) {
  struct tc_leases_env env = { &config, LOOPS, NULL, take_order, NULL };
  struct tc_http_limits limits = tt_http_limits();
  struct tb_diag diag;

  tb_diag_clear(&diag);
  limits.connections_max = 256;
  limits.owner_questions_max = 4;
  tc_config_init(&config);
  config.lease_max = LEASES_MAX;
  config.lease_owner_max = LEASES_MAX;
  cr_assert_eq(tc_leases_new(&env, &diag, &leases), TB_OK);
  cr_assert_eq(tc_leases_start(leases, &diag), TB_OK);
  server = tt_http_start_with("127.0.0.1:0", &limits, NULL, leases);
  for (int i = 0; i < POLLERS; i++) tt_reader_open(&readers[i], server);
}

static void fini(void) {
  for (int i = 0; i < POLLERS; i++) tt_reader_close(&readers[i]);
  tc_leases_stop(leases);
  tt_http_stop(server);
  tc_leases_free(leases);
  tc_config_fini(&config);
}

TestSuite(http_leases, .init = init, .fini = fini);

/* --- questions --------------------------------------------------------------------------------- */

#define WAITS() atomic_load(&server->metrics.http_waits)

#define EXPECT(reader, part)                                                                       \
  cr_assert_not_null(strstr((reader)->body, part), "%s is not in\n%s", part, (reader)->answer)

/* The loop acknowledges the lease while the reader waits. */
static uint64_t open_lease(struct tt_reader *r, const char *text) {
  size_t before = n_ready;

  tt_say(r, "POST /api/v1/leases", "", text);
  TT_WAIT_UNTIL((take_in_the_new(), n_ready > before));
  cr_assert_eq(tt_hear(r), 201, "%s", r->answer);
  const char *id = strstr(r->body, "\"id\":\"");
  cr_assert_not_null(id, "%s", r->body);
  return strtoull(id + 6, NULL, 16);
}

static void next(struct tt_reader *r, uint64_t lease, const char *query, const char *fields) {
  char request[200];

  snprintf(request, sizeof request, "GET /api/v1/leases/%016" PRIx64 "%s", lease, query);
  tt_say(r, request, fields, NULL);
}

static int ask_next(struct tt_reader *r, uint64_t lease, const char *query) {
  next(r, lease, query, "");
  return tt_hear(r);
}

static int release(struct tt_reader *r, uint64_t lease) {
  char request[80];

  snprintf(request, sizeof request, "DELETE /api/v1/leases/%016" PRIx64, lease);
  return tt_ask(r, request, "", NULL);
}

/* --- the life of a lease ------------------------------------------------------------------------- */

Test(http_leases, is_opened_read_and_released_in_json) {
  uint64_t lease = open_lease(
      one, "{\"filter\":{\"service\":\"shop\",\"kinds\":[\"GoBlock\"]},\"window_bytes\":1000}");
  char place[80];

  EXPECT(one, "\"window_bytes\":1000,");
  snprintf(place, sizeof place, "Location: /api/v1/leases/%016" PRIx64 "\r\n", lease);
  cr_assert_not_null(strstr(one->answer, place), "%s", one->answer);

  next(one, lease, "?wait=20s", "");
  TT_WAIT_UNTIL(WAITS() == 1);
  post_event(lease, 1);
  cr_assert_eq(tt_hear(one), 200, "%s", one->answer);
  EXPECT(one, "\"number\":1,\"lost\":0,");
  EXPECT(one, "\"goroutine\":-1,");
  cr_assert_not_null(strstr(one->answer, "Content-Type: application/json\r\n"), "%s", one->answer);
  post_event(lease, 2);
  cr_assert_eq(ask_next(one, lease, "?after=0&wait=20s"), 200);
  EXPECT(one, "\"number\":1,");
  cr_assert_eq(ask_next(one, lease, "?after=1&wait=20s"), 200);
  cr_assert_null(strstr(one->body, "\"number\":1,"), "%s", one->body);
  EXPECT(one, "\"number\":2,");
  cr_assert_eq(ask_next(one, lease, "?after=2"), 200);
  cr_assert_str_eq(one->body, "{\"bundles\":[]}\n");

  cr_assert_eq(release(one, lease), 204);
  cr_assert_null(strstr(one->answer, "Content-Length"), "%s", one->answer);
  cr_assert_eq(ask_next(one, lease, ""), 404);
  EXPECT(one, "its reader ended the lease, ");
}

Test(http_leases, protobuf_is_what_the_loops_packed) {
  uint64_t lease = open_lease(one, "{}");

  for (uint64_t gen = 1; gen <= 3; gen++) post_event(lease, gen);
  next(one, lease, "?wait=20s&bytes=1", PROTOBUF);
  cr_assert_eq(tt_hear(one), 200, "%s", one->answer);
  cr_assert_not_null(
      strstr(one->answer,
             "Content-Type: application/protobuf; proto=tracecollect.v1.NextReply\r\n"),
      "%s", one->answer);
  Tracecollect__V1__NextReply *reply =
      tracecollect__v1__next_reply__unpack(NULL, one->body_len, (uint8_t *)one->body);
  cr_assert_not_null(reply);
  cr_assert_eq(reply->n_bundles, 1, "one at least, and no more bytes than were asked for");
  cr_assert_eq(reply->bundles[0]->number, 1);
  cr_assert_str_eq(reply->bundles[0]->service, "shop");
  cr_assert_eq(reply->bundles[0]->events[0]->time_ns, 4711);
  tracecollect__v1__next_reply__free_unpacked(reply, NULL);
}

/* --- what is wrong ------------------------------------------------------------------------------- */

Test(http_leases, what_cannot_be_asked_is_refused_in_words) {
  static const struct {
    const char *text, *why;
  } bodies[] = {
    { "{\"filter\":{\"kinds\":[\"GoAway\"]}}", "there is no kind of event called \\\"GoAway\\\"" },
    { "{\"filter\":{\"service\":\"a\",\"service_prefix\":\"b\"}}", "exclude each other" },
    { "{\"filter\":{\"stream\":\"0102\"}}", "a stream's id has 16 bytes" },
    { "{\"colour\":1}", "colour" },
    { "{", "error" },
  };
  static const char *const paths[] = { "GET /api/v1/leases/1",
                                       "GET /api/v1/leases/00000000000000zz",
                                       "DELETE /api/v1/leases/",
                                       "GET /api/v1/leases/00000000000012345" };

  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
    cr_assert_eq(tt_ask(one, "POST /api/v1/leases", "", bodies[i].text), 400, "%s", one->answer);
    EXPECT(one, bodies[i].why);
  }
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
    cr_assert_eq(tt_ask(one, paths[i], "", NULL), 404, "%s: %s", paths[i], one->answer);
  uint64_t lease = open_lease(one, "{}");
  cr_assert_eq(ask_next(one, lease, "?after=17"), 409);
  EXPECT(one, "ask with the last number that you have, after=0\"");
  cr_assert_eq(ask_next(one, lease, "?wait=1h"), 400);
  cr_assert_eq(ask_next(one, lease, "?bytes=0"), 400);
  cr_assert_eq(ask_next(one, lease, "?before=1"), 400);
  cr_assert_eq(atomic_load(&server->metrics.http_client_errors_total),
               sizeof bodies / sizeof bodies[0] + sizeof paths / sizeof paths[0] + 4);
}

struct stranger {
  struct tc_lease_ask ask;
  uint64_t lease;
  atomic_bool answered;
};

static void on_stranger(struct tc_lease_ask *ask, const struct tc_lease_answer *said) {
  struct stranger *s = (struct stranger *)ask;

  s->lease = said->lease;
  s->answered = true;
}

Test(http_leases, that_of_another_owner_is_not_for_us) {
  struct stranger s = { .ask = { .kind = TC_LEASE_OPEN, .owner = 17, .answer = on_stranger } };

  to_filter_all(&s.ask.filter.events);
  tc_leases_ask(leases, &s.ask);
  TT_WAIT_UNTIL((take_in_the_new(), s.answered));
  cr_assert_eq(ask_next(one, s.lease, ""), 403);
  EXPECT(one, "the lease belongs to another reader");
  cr_assert_eq(release(one, s.lease), 403);
  cr_assert_eq(atomic_load(&server->metrics.http_client_errors_total), 2);
  cr_assert_eq(atomic_load(&tc_leases_metrics(leases)->leases), 1);
}

Test(http_leases, one_owner_has_so_many) {
  for (int i = 0; i < LEASES_MAX; i++) open_lease(one, "{}");
  cr_assert_eq(tt_ask(one, "POST /api/v1/leases", "", "{}"), 429);
  EXPECT(one, "lease.owner_max is reached");
}

/* A head or a body that is cut anywhere opens no lease, and delays no other client. */
Test(http_leases, a_question_cut_at_every_byte_is_none) {
  static const char text[] = "POST /api/v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                             "application/json\r\nContent-Length: 17\r\n\r\n{\"filter\":{    }}";

  for (size_t n = 0; n < sizeof text - 1; n++) {
    int fd = tt_http_dial_path(server);

    tt_http_say(fd, text, n);
    close(fd);
  }
  cr_assert_eq(ask_next(one, 4711, ""), 404);
  cr_assert_eq(atomic_load(&tc_leases_metrics(leases)->leases_opened_total), 0);
}

/* --- readers that wait, and leave ------------------------------------------------------------------ */

Test(http_leases, readers_that_wait_hold_no_worker_and_are_no_questions) {
  uint64_t lease[POLLERS];

  for (int i = 1; i < POLLERS; i++) lease[i] = open_lease(&readers[i], "{}");
  for (int i = 1; i < POLLERS; i++) next(&readers[i], lease[i], "?wait=20s", PROTOBUF);
  TT_WAIT_UNTIL(WAITS() == POLLERS - 1);
  cr_assert_eq(tt_ask(one, "GET /metrics", "", NULL), 200);
  cr_assert_eq(tt_ask(one, "GET /api/v1/reports", "", NULL), 200, "%s", one->answer);
  for (int i = 1; i < POLLERS; i++) post_event(lease[i], 1);
  for (int i = 1; i < POLLERS; i++) cr_assert_eq(tt_hear(&readers[i]), 200);
}

Test(http_leases, a_reader_that_left_loses_nothing) {
  uint64_t lease = open_lease(one, "{}");

  next(one, lease, "?wait=20s", "");
  TT_WAIT_UNTIL(WAITS() == 1);
  shutdown(one->fd, SHUT_RDWR);
  TT_WAIT_UNTIL(WAITS() == 0);
  post_event(lease, 1);
  cr_assert_eq(ask_next(other, lease, "?wait=20s"), 200);
  EXPECT(other, "\"number\":1,\"lost\":0,");
}

Test(http_leases, one_that_nobody_heard_of_ends) {
  tt_say(one, "POST /api/v1/leases", "", "{}"); /* no loop confirms the lease */
  TT_WAIT_UNTIL(WAITS() == 1);
  shutdown(one->fd, SHUT_RDWR);
  TT_WAIT_UNTIL(WAITS() == 0);
  cr_assert_eq(atomic_load(&tc_leases_metrics(leases)->leases), 0);
}

Test(http_leases, who_waits_when_the_leases_end_is_told) {
  uint64_t lease = open_lease(one, "{}");

  next(one, lease, "?wait=20s", "");
  TT_WAIT_UNTIL(WAITS() == 1);
  tc_leases_stop(leases);
  cr_assert_eq(tt_hear(one), 503);
  EXPECT(one, "the collector is shutting down");
  cr_assert_eq(ask_next(one, lease, "?wait=20s"), 503);
}

/* --- many readers that reset whenever they like ---------------------------------------------------- */

struct rash {
  pthread_t thread;
  struct tt_reader at;
  unsigned seed;
  uint64_t lease, after, events;
};

static void reset(int fd) {
  const struct linger now = { .l_onoff = 1 };

  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

static bool hear_bundles(struct rash *r) {
  if (tt_hear(&r->at) != 200) return false;
  Tracecollect__V1__NextReply *reply =
      tracecollect__v1__next_reply__unpack(NULL, r->at.body_len, (uint8_t *)r->at.body);
  for (size_t i = 0; i < reply->n_bundles; i++) {
    if (reply->bundles[i]->number != r->after + 1 || reply->bundles[i]->lost != 0) abort();
    r->after = reply->bundles[i]->number;
    r->events += reply->bundles[i]->n_events;
  }
  tracecollect__v1__next_reply__free_unpacked(reply, NULL);
  return true;
}

static void *read_at_random(void *self) {
  struct rash *r = self;

  tt_reader_open(&r->at, server);
  while (r->events < RANDOM_EVENTS) {
    unsigned chance = (unsigned)rand_r(&r->seed) % 8;
    char query[80];

    snprintf(query, sizeof query, "?wait=20s&bytes=2000&after=%" PRIu64, r->after);
    next(&r->at, r->lease, query, chance % 2 == 0 ? PROTOBUF : PROTOBUF "Connection: close\r\n");
    if (chance == 0) sched_yield();
    if (chance > 1 && hear_bundles(r) && chance % 2 == 0) continue;
    reset(r->at.fd);
    tt_reader_open(&r->at, server);
  }
  tt_reader_close(&r->at);
  return NULL;
}

Test(http_leases, readers_that_reset_at_random_miss_no_event) {
  static struct rash rash[RANDOM_READERS];

  for (unsigned i = 0; i < RANDOM_READERS; i++) {
    rash[i].seed = i + 1;
    rash[i].lease = open_lease(one, "{}");
  }
  for (unsigned i = 0; i < RANDOM_READERS; i++)
    cr_assert_eq(pthread_create(&rash[i].thread, NULL, read_at_random, &rash[i]), 0);
  for (uint64_t n = 1; n <= RANDOM_EVENTS; n++)
    for (unsigned i = 0; i < RANDOM_READERS; i++) post_event(rash[i].lease, n);
  for (unsigned i = 0; i < RANDOM_READERS; i++) pthread_join(rash[i].thread, NULL);
  for (unsigned i = 0; i < RANDOM_READERS; i++) cr_assert_eq(rash[i].events, RANDOM_EVENTS);
}
