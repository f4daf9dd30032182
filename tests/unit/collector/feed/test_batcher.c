/* SPDX-License-Identifier: Apache-2.0 */
/* Topics, counts and bundles; the test sets the clock. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "collector/feed/batcher.h"
#include "proto/feed.pb-c.h"

enum { SENT_MAX = 64, WAIT_NS = 5000000 };

struct sent {
  char topic[TC_FEED_TOPIC_BYTES];
  Tracecollect__V1__FeedMessage *message;
  uint32_t messages;
  size_t body_bytes;
};

static struct sent sent[SENT_MAX];
static size_t sent_count;
static struct tc_feed_bundles *bundles;
static uint64_t now, wall = 1000;

static uint64_t next_wall(void) {
  return ++wall;
}

static void on_send(void *self, const struct tc_feed_bundle *bundle) {
  struct sent *s = &sent[sent_count++];
  unsigned char *wire = malloc(bundle->len);

  (void)self;
  cr_assert_leq(sent_count, SENT_MAX);
  tc_feed_bundle_write(bundle, wire);
  cr_assert_eq(strlen((const char *)wire), bundle->topic_len, "a NUL ends the topic");
  strcpy(s->topic, (const char *)wire);
  s->message = tracecollect__v1__feed_message__unpack(NULL, bundle->len - bundle->topic_len - 1,
                                                      wire + bundle->topic_len + 1);
  cr_assert_not_null(s->message);
  s->messages = bundle->messages;
  s->body_bytes = bundle->body_bytes;
  free(wire);
}

static void begin(size_t topics_max, size_t body_bytes_max) {
  struct tc_feed_bundle_limits limits = { topics_max, body_bytes_max, WAIT_NS, next_wall };
  struct tc_feed_bundle_sink sink = { NULL, on_send };

  cr_assert_eq(tc_feed_bundles_new(&limits, sink, &bundles), TB_OK);
}

static void end(void) {
  for (size_t i = 0; i < sent_count; i++)
    tracecollect__v1__feed_message__free_unpacked(sent[i].message, NULL);
  tc_feed_bundles_free(bundles);
}

/* Makes a log event with text_bytes of text. */
static struct tc_feed_item *make_item(const char *service, enum tc_feed_slot slot, uint64_t gen,
                                      size_t text_bytes) {
  Tracecollect__V1__FeedMessage message = TRACECOLLECT__V1__FEED_MESSAGE__INIT;
  Tracecollect__V1__Event event = TRACECOLLECT__V1__EVENT__INIT, *list[] = { &event };
  char *text = calloc(1, text_bytes + 1);

  memset(text, 'x', text_bytes);
  event.text = text;
  message.events = list;
  message.n_events = 1;
  size_t len = tracecollect__v1__feed_message__get_packed_size(&message);
  struct tc_feed_item *item = calloc(1, sizeof *item + len);
  strcpy(item->service, service);
  strcpy(item->instance, "host:1");
  item->stream[0] = (unsigned char)service[0];
  item->slot = slot;
  item->count = 1;
  item->gen = gen;
  item->len = tracecollect__v1__feed_message__pack(&message, item->bytes);
  free(text);
  return item;
}

static void add_missing(const char *service, enum tc_feed_slot slot, uint64_t gen,
                        uint32_t missed) {
  struct tc_feed_item *item = make_item(service, slot, gen, 10);

  item->missed = missed;
  cr_assert_eq(tc_feed_bundles_add(bundles, item, now), TB_OK);
}

static void add(const char *service, enum tc_feed_slot slot, uint64_t gen) {
  add_missing(service, slot, gen, 0);
}

static const enum tc_feed_slot LOGS = (enum tc_feed_slot)(TC_FEED_EVENTS + TC_FEED_EVENT_LOGS);
static const enum tc_feed_slot STW = (enum tc_feed_slot)(TC_FEED_EVENTS + TC_FEED_EVENT_STW);

Test(feed, a_topic_has_its_levels_where_a_filter_looks_for_them) {
  char topic[TC_FEED_TOPIC_BYTES];

  tc_feed_topic(topic, "shop", "host:1",
                (enum tc_feed_slot)(TC_FEED_REPORTS + TO_ANALYSIS_SYSCALL));
  cr_assert_str_eq(topic, "shop/host:1/report/syscall");
  tc_feed_topic(topic, "shop", "host:1", TC_FEED_GENERATION);
  cr_assert_str_eq(topic, "shop/host:1/generation");
  tc_feed_topic(topic, "a/b", "ü %", STW);
  cr_assert_str_eq(topic, "a%2Fb/%C3%BC%20%25/event/stw");
}

Test(feed, the_longest_names_fit_a_topic) {
  char topic[TC_FEED_TOPIC_BYTES], name[TC_NAME_MAX + 1] = "";

  memset(name, '/', TC_NAME_MAX);
  for (enum tc_feed_slot slot = 0; slot < TC_FEED_SLOTS; slot++)
    cr_assert_eq(tc_feed_topic(topic, name, name, slot),
                 2 * (3 * TC_NAME_MAX + 1) + strlen(tc_feed_slot_name(slot)));
}

Test(feed, messages_that_come_together_are_sent_together) {
  begin(100, 1 << 20);
  for (int i = 0; i < 10; i++) add("shop", LOGS, 7);
  cr_assert_eq(sent_count, 0);
  cr_assert_eq(tc_feed_bundles_flush(bundles, now), now + WAIT_NS, "it says when to come again");
  now += WAIT_NS;
  cr_assert_eq(tc_feed_bundles_flush(bundles, now), UINT64_MAX);
  cr_assert_eq(sent_count, 1);
  cr_assert_str_eq(sent[0].topic, "shop/host:1/event/logs");
  cr_assert_eq(sent[0].message->seq, 1);
  cr_assert_eq(sent[0].message->count, 10);
  cr_assert_eq(sent[0].message->n_events, 10);
  cr_assert_eq(sent[0].message->generation, 7);
  cr_assert_str_eq(sent[0].message->service, "shop");
  cr_assert_eq(sent[0].messages, 10);
  end();
}

Test(feed, each_topic_counts_for_itself) {
  begin(100, 1 << 20);
  for (int i = 0; i < 3; i++) {
    add("shop", LOGS, 1);
    if (i == 0) add("shop", STW, 1);
    tc_feed_bundles_flush_all(bundles);
  }
  add("bank", LOGS, 1);
  tc_feed_bundles_flush_all(bundles);
  cr_assert_eq(sent_count, 5);
  cr_assert_eq(sent[0].message->seq, 1);
  cr_assert_eq(sent[1].message->seq, 1);
  cr_assert_eq(sent[2].message->seq, 2);
  cr_assert_eq(sent[3].message->seq, 3);
  cr_assert_eq(sent[4].message->seq, 1);
  end();
}

Test(feed, a_bundle_is_of_one_stream_and_one_generation) {
  begin(100, 1 << 20);
  add("shop", LOGS, 1);
  add("shop", LOGS, 2);
  cr_assert_eq(sent_count, 1);
  struct tc_feed_item *other = make_item("shop", LOGS, 2, 1); /* a later stream of the same name */
  other->stream[0] = 99;
  cr_assert_eq(tc_feed_bundles_add(bundles, other, now), TB_OK);
  cr_assert_eq(sent_count, 2);
  tc_feed_bundles_flush_all(bundles);
  cr_assert_eq(sent[2].message->seq, 3, "one topic, one count");
  cr_assert_eq(sent[2].message->stream.data[0], 99);
  end();
}

Test(feed, what_was_dropped_before_is_a_gap_in_the_count) {
  begin(100, 1 << 20);
  add("shop", LOGS, 1);
  add_missing("shop", LOGS, 1, 5);
  tc_feed_bundles_flush_all(bundles);
  cr_assert_eq(sent_count, 2, "a gap does not lie inside a bundle");
  cr_assert_eq(sent[0].message->seq + sent[0].message->count, 2);
  cr_assert_eq(sent[1].message->seq, 7);
  end();
}

Test(feed, a_full_bundle_goes_at_once_and_all_begun_before_it_go_first) {
  begin(100, 1000);
  add("shop", TC_FEED_GENERATION, 1);
  add("shop", STW, 1);
  for (int i = 0; i < 100; i++) add("shop", LOGS, 1);
  cr_assert_geq(sent_count, 3);
  cr_assert_str_eq(sent[0].topic, "shop/host:1/generation");
  cr_assert_str_eq(sent[1].topic, "shop/host:1/event/stw");
  uint64_t expected = 1;
  for (size_t i = 2; i < sent_count; i++) {
    cr_assert_leq(sent[i].body_bytes, 1000);
    cr_assert_eq(sent[i].message->seq, expected);
    expected += sent[i].message->count;
  }
  end();
}

Test(feed, events_come_between_their_generations_begin_and_end) {
  begin(100, 1 << 20);
  add("shop", TC_FEED_GENERATION, 1);
  add("shop", LOGS, 1);
  add("shop", TC_FEED_GENERATION, 1);
  tc_feed_bundles_flush_all(bundles);
  cr_assert_eq(sent_count, 3);
  cr_assert_str_eq(sent[0].topic, "shop/host:1/generation");
  cr_assert_str_eq(sent[1].topic, "shop/host:1/event/logs");
  cr_assert_eq(sent[2].message->seq, 2);
  end();
}

Test(feed, a_large_message_goes_alone) {
  begin(100, 1000);
  add("shop", LOGS, 1);
  for (int i = 0; i < 2; i++)
    cr_assert_eq(tc_feed_bundles_add(bundles, make_item("shop", LOGS, 1, 900), now), TB_OK);
  tc_feed_bundles_flush_all(bundles);
  cr_assert_eq(sent_count, 2);
  cr_assert_eq(sent[0].message->n_events + sent[1].message->n_events, 3);
  end();
}

Test(feed, the_span_of_a_bundle_covers_its_messages) {
  static const uint64_t from[] = { 500, 0, 300 }, until[] = { 600, 0, 400 };

  begin(100, 1 << 20);
  for (int i = 0; i < 3; i++) {
    struct tc_feed_item *item = make_item("shop", LOGS, 1, 1);
    item->from_wall_ns = from[i];
    item->until_wall_ns = until[i];
    cr_assert_eq(tc_feed_bundles_add(bundles, item, now), TB_OK);
  }
  tc_feed_bundles_flush_all(bundles);
  cr_assert_eq(sent[0].message->from_wall_ns, 300);
  cr_assert_eq(sent[0].message->until_wall_ns, 600);
  end();
}

Test(feed, a_forgotten_topic_counts_anew_and_says_so) {
  begin(2, 1 << 20);
  add("shop", LOGS, 1);
  tc_feed_bundles_flush_all(bundles);
  add("bank", LOGS, 1);
  add("shop", LOGS, 1); /* "shop" is used again, so "bank" is the older one now */
  add("port", LOGS, 1);
  cr_assert_eq(tc_feed_bundles_topics(bundles), 2);
  add("shop", LOGS, 1);
  add("bank", LOGS, 1);
  tc_feed_bundles_flush_all(bundles);
  const struct sent *last = &sent[sent_count - 1];
  cr_assert_str_eq(last->topic, "bank/host:1/event/logs");
  cr_assert_eq(last->message->seq, 1);
  for (size_t i = 0; i + 1 < sent_count; i++)
    if (strcmp(sent[i].topic, last->topic) == 0)
      cr_assert_neq(sent[i].message->began_wall_ns, last->message->began_wall_ns);
    else if (strncmp(sent[i].topic, "shop", 4) == 0)
      cr_assert_eq(sent[i].message->began_wall_ns, sent[0].message->began_wall_ns);
  end();
}

Test(feed, lists_of_kinds_and_windows_are_checked) {
  struct tb_diag diag;
  unsigned bits;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_feed_event_list("stw,logs", &diag, &bits), TB_OK);
  cr_assert_eq(bits, 1u << TC_FEED_EVENT_STW | 1u << TC_FEED_EVENT_LOGS);
  cr_assert_eq(tc_feed_event_list("", &diag, &bits), TB_OK);
  cr_assert_eq(bits, 0);
  cr_assert_eq(tc_feed_window_list("10s,all", &diag, &bits), TB_OK);
  cr_assert_eq(bits, 1u << TO_WINDOW_10S | 1u << TO_WINDOW_ALL);
  cr_assert_eq(tc_feed_event_list("stw,log", &diag, &bits), TB_BROKEN);
  cr_assert_str_eq(diag.text, "feed.events: \"log\" is not a known name");
}
