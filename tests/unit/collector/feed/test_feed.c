/* SPDX-License-Identifier: Apache-2.0 */
/* The feed's own thread: from ports to readers and nng subscribers. */
#include <criterion/criterion.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nng/close.h"
#include "tests/support/certs.h"
#include "tests/support/patience.h"
#include "unit/collector/feed/feed_ear.h"

static const enum tc_feed_slot LOGS = (enum tc_feed_slot)(TC_FEED_EVENTS + TC_FEED_EVENT_LOGS);

/* Publishes one log event. */
static void publish_sized(struct tc_feed *feed, unsigned port, struct tc_feed_origin *origin,
                          uint64_t gen, size_t text_bytes) {
  Tracecollect__V1__FeedMessage message = TRACECOLLECT__V1__FEED_MESSAGE__INIT;
  Tracecollect__V1__Event event = TRACECOLLECT__V1__EVENT__INIT, *list[] = { &event };
  char *text = calloc(1, text_bytes + 1);

  memset(text, 'x', text_bytes);
  event.text = text;
  message.events = list;
  message.n_events = 1;
  void *bytes = malloc(tracecollect__v1__feed_message__get_packed_size(&message));
  struct tc_feed_note note = { .slot = LOGS, .count = 1, .gen = gen, .bytes = bytes };
  note.len = tracecollect__v1__feed_message__pack(&message, bytes);
  tc_feed_publish(feed, port, origin, &note);
  free(bytes);
  free(text);
}

static void publish(struct tc_feed *feed, struct tc_feed_origin *origin, uint64_t gen) {
  publish_sized(feed, 0, origin, gen, 10);
}

static const struct tc_feed_origin shop = { .service = "shop", .instance = "host:1" };
static const char topic[] = "shop/host:1/event/logs";

static uint64_t dropped(struct tt_ear *ear) {
  return atomic_load(&tc_feed_metrics(ear->feed)->feed_dropped_total);
}

Test(feed, what_a_loop_publishes_a_reader_in_the_process_hears) {
  struct tc_feed_origin origin = shop;
  static struct tt_ear ear;

  tt_ear_open(&ear, NULL);
  cr_assert(tc_feed_wanted(ear.feed));
  for (uint64_t gen = 1; gen <= 3; gen++) publish(ear.feed, &origin, gen);
  for (uint64_t i = 0; i < 3; i++) {
    const Tracecollect__V1__FeedMessage *m = tt_ear_wait(&ear, topic, i);
    cr_assert_eq(m->seq, i + 1);
    cr_assert_eq(m->generation, i + 1);
    cr_assert_eq(m->n_events, 1);
  }
  cr_assert_eq(atomic_load(&tc_feed_metrics(ear.feed)->feed_messages_total), 3);
  tt_ear_close(&ear);
}

Test(feed, while_nobody_listens_nothing_is_wanted) {
  static struct tt_ear ear;

  tt_ear_open(&ear, NULL);
  cr_assert(tc_feed_reports_wanted(ear.feed));
  tc_feed_reader_want_reports(ear.reader, false);
  cr_assert(tc_feed_wanted(ear.feed));
  cr_assert_not(tc_feed_reports_wanted(ear.feed));
  tc_feed_reader_listen(ear.reader, false);
  cr_assert_not(tc_feed_wanted(ear.feed));
  tt_ear_close(&ear);
}

Test(feed, a_drop_for_want_of_room_is_a_gap_in_the_count) {
  static const char *const small[] = { "feed.message_bytes_max=16KiB", "feed.backlog_bytes=1MiB",
                                       "feed.bundle_wait=1s", NULL };
  struct tc_feed_origin origin = shop;
  static struct tt_ear ear;
  uint32_t sent;
  uint64_t began;

  /* Bundles of one stream each wait for a second, so the backlog fills up; if the machine stood
   * still for that long, the test tries again. */
  for (int tries = 0;; tries++) {
    tt_ear_open(&ear, small);
    origin = shop;
    sent = 0;
    began = tc_mono_ns();
    while (dropped(&ear) == 0) {
      char name[16];
      struct tc_feed_origin other = shop;
      snprintf(name, sizeof name, "s%u", sent++);
      strcpy(other.service, name);
      publish_sized(ear.feed, 0, &other, 1, 10000);
    }
    for (int i = 0; i < 4; i++) publish_sized(ear.feed, 0, &origin, 1, 10000);
    if (tc_mono_ns() - began < UINT64_C(900000000)) break;
    cr_assert_lt(tries, 100);
    tt_ear_close(&ear);
  }
  cr_assert_leq(sent, (1 << 20) / 10000 + 1, "%u messages of 10 kB within 1 MiB", sent);
  cr_assert_eq(origin.missed[LOGS], 4);
  cr_assert_eq(dropped(&ear), 5);
  tt_ear_wait(&ear, "s0/host:1/event/logs", 0); /* a second later there is room again */
  tt_ear_wait(&ear, "s10/host:1/event/logs", 0);
  publish(ear.feed, &origin, 1);
  cr_assert_eq(tt_ear_wait(&ear, topic, 0)->seq, 5);
  tt_ear_close(&ear);
}

Test(feed, a_message_too_long_is_dropped_and_counted) {
  static const char *const small[] = { "feed.message_bytes_max=16KiB", NULL };
  struct tc_feed_origin origin = shop;
  static struct tt_ear ear;

  tt_ear_open(&ear, small);
  publish_sized(ear.feed, 0, &origin, 1, 20000);
  cr_assert_eq(dropped(&ear), 1);
  tc_feed_miss(ear.feed, &origin, LOGS, 7);
  publish(ear.feed, &origin, 1);
  cr_assert_eq(tt_ear_wait(&ear, topic, 0)->seq, 9);
  cr_assert_eq(dropped(&ear), 8);
  tt_ear_close(&ear);
}

Test(feed, a_reader_that_does_not_come_loses_messages_and_sees_how_many) {
  enum { MESSAGES = 3000, EACH = 8000 };
  struct tc_feed_origin origin = shop;
  static struct tt_ear ear;
  uint64_t expected = 1, lost = 0, heard = 0;

  tt_ear_open(&ear, NULL);
  for (uint64_t i = 1; i <= MESSAGES; i++) {
    /* each event has a generation of its own, so that no two are joined */
    publish_sized(ear.feed, 0, &origin, i, EACH);
    while (atomic_load(&tc_feed_metrics(ear.feed)->feed_messages_total) + 250 < i) usleep(100);
  }
  TT_WAIT_UNTIL(atomic_load(&tc_feed_metrics(ear.feed)->feed_messages_total) >= MESSAGES);
  for (size_t i = 0; i == 0 || ear.heard[ear.count - 1].message->generation < MESSAGES + 1; i++) {
    if (i == 0) { /* the queue has room again */
      tt_ear_wait(&ear, topic, 0);
      publish(ear.feed, &origin, MESSAGES + 1);
    }
    const Tracecollect__V1__FeedMessage *m = tt_ear_wait(&ear, topic, i);
    lost += m->seq - expected;
    expected = m->seq + m->count;
    heard += m->count;
  }
  cr_assert_gt(lost, 0);
  cr_assert_eq(heard + lost, MESSAGES + 1);
  cr_assert_eq(dropped(&ear), lost);
  tt_ear_close(&ear);
}

/* --- two ports at a time --- */

struct publisher {
  struct tc_feed *feed;
  unsigned port;
};

static void *publish_many(void *self) {
  struct publisher *p = self;
  struct tc_feed_origin origin = shop;

  snprintf(origin.instance, sizeof origin.instance, "host:%u", p->port);
  for (uint64_t i = 1; i <= 1000; i++) publish_sized(p->feed, p->port, &origin, i / 100, 10);
  return NULL;
}

Test(feed, two_loops_publish_at_a_time_and_each_topic_keeps_its_order) {
  static struct tt_ear ear;
  pthread_t thread[2];
  struct publisher publisher[2];

  tt_ear_open(&ear, NULL);
  for (unsigned i = 0; i < 2; i++) {
    publisher[i] = (struct publisher){ ear.feed, i };
    cr_assert_eq(pthread_create(&thread[i], NULL, publish_many, &publisher[i]), 0);
  }
  for (unsigned port = 0; port < 2; port++) {
    uint64_t expected = 1, gen = 0;
    char name[64];
    snprintf(name, sizeof name, "shop/host:%u/event/logs", port);
    for (size_t i = 0; expected <= 1000; i++) {
      const Tracecollect__V1__FeedMessage *m = tt_ear_wait(&ear, name, i);
      cr_assert_eq(m->seq, expected);
      cr_assert_geq(m->generation, gen);
      expected += m->count;
      gen = m->generation;
    }
  }
  for (unsigned i = 0; i < 2; i++) pthread_join(thread[i], NULL);
  cr_assert_eq(dropped(&ear), 0);
  tt_ear_close(&ear);
}

/* --- nng subscribers --- */

static nng_socket subscribe(const char *prefix, const char *url) {
  nng_socket sub;

  cr_assert_eq(nng_sub0_open(&sub), 0);
  cr_assert_eq(nng_socket_set(sub, NNG_OPT_SUB_SUBSCRIBE, prefix, strlen(prefix)), 0);
  cr_assert_eq(nng_socket_set_ms(sub, NNG_OPT_RECVTIMEO, TT_PATIENCE_MS), 0);
  cr_assert_eq(nng_dial(sub, url, NULL, NNG_FLAG_NONBLOCK), 0);
  return sub;
}

static void await_subscribers(struct tt_ear *ear, unsigned n) {
  for (int i = 0; atomic_load(&tc_feed_metrics(ear->feed)->feed_subscribers) != n; i++) {
    cr_assert_lt(i, TT_PATIENCE_MS);
    nng_msleep(1);
  }
}

static Tracecollect__V1__FeedMessage *receive(nng_socket sub, const char *wanted_topic) {
  nng_msg *msg;

  cr_assert_eq(nng_recvmsg(sub, &msg, 0), 0);
  const char *body = nng_msg_body(msg);
  size_t skip = strnlen(body, nng_msg_len(msg)) + 1;
  cr_assert_str_eq(body, wanted_topic);
  Tracecollect__V1__FeedMessage *m = tracecollect__v1__feed_message__unpack(
      NULL, nng_msg_len(msg) - skip, (const uint8_t *)body + skip);
  cr_assert_not_null(m);
  nng_msg_free(msg);
  return m;
}

Test(feed, a_subscriber_filters_by_the_first_bytes_of_the_topic) {
  struct tc_feed_origin origin = shop, other = shop;
  static struct tt_ear ear;

  strcpy(other.service, "shopping");
  tt_ear_open(&ear, NULL);
  nng_socket sub = subscribe("shop/", tc_feed_url(ear.feed, 0));
  await_subscribers(&ear, 1);
  publish(ear.feed, &other, 1);
  publish(ear.feed, &origin, 2);
  Tracecollect__V1__FeedMessage *m = receive(sub, topic);
  cr_assert_eq(m->generation, 2);
  tracecollect__v1__feed_message__free_unpacked(m, NULL);
  tc_nng_close(sub);
  await_subscribers(&ear, 0);
  cr_assert_eq(atomic_load(&tc_feed_metrics(ear.feed)->feed_subscriptions_total), 1);
  tt_ear_close(&ear);
}

/* A subscriber that reads nothing: its kernel buffers and queue fill up, the publisher goes on. */
Test(feed, a_stopped_subscriber_stops_nobody_and_sees_its_gap) {
  enum { MESSAGES = 5000, EACH = 8000 };
  static const char *const small[] = { "feed.message_bytes_max=16KiB", "feed.queue_bytes=1MiB",
                                       NULL };
  struct tc_feed_origin origin = shop;
  static struct tt_ear ear;

  tt_ear_open(&ear, small);
  tc_feed_reader_listen(ear.reader, false);
  nng_socket sub = subscribe("", tc_feed_url(ear.feed, 0));
  await_subscribers(&ear, 1);
  for (uint64_t i = 1; i <= MESSAGES; i++) {
    publish_sized(ear.feed, 0, &origin, i, EACH);
    while (atomic_load(&tc_feed_metrics(ear.feed)->feed_messages_total) + 250 < i) usleep(100);
  }
  TT_WAIT_UNTIL(atomic_load(&tc_feed_metrics(ear.feed)->feed_messages_total) >= MESSAGES);
  cr_assert_eq(dropped(&ear), 0, "nothing is lost in here");
  uint64_t heard = 0, lost = 0, expected = 1;
  while (expected <= MESSAGES) {
    Tracecollect__V1__FeedMessage *m = receive(sub, topic);
    lost += m->seq - expected;
    heard += m->count;
    expected = m->seq + m->count;
    tracecollect__v1__feed_message__free_unpacked(m, NULL);
  }
  cr_assert_gt(lost, 0);
  cr_assert_eq(heard + lost, MESSAGES);
  tc_nng_close(sub);
  tt_ear_close(&ear);
}

/* The watchdog asks while nobody publishes. */
Test(feed, its_thread_turns_though_nothing_comes) {
  static struct tt_ear ear;

  tt_ear_open(&ear, NULL);
  uint64_t before = tc_feed_turns(ear.feed);
  TT_WAIT_UNTIL(tc_feed_turns(ear.feed) >= before + 2);
  tt_ear_close(&ear);
}
