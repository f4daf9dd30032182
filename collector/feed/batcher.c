/* SPDX-License-Identifier: Apache-2.0 */
/* One list has all topics in order of last use, another those with an open bundle, the oldest bundle first.
 * A bundle is a chain of items. Packed messages of the same list merge by concatenation, and so do envelope
 * and messages. About 150 ns a message, mostly for the lookup of the topic; 400 bytes a topic. */
#include "collector/feed/batcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "base/map.h"
#include "proto/feed.pb-c.h"

struct topic {
  struct topic *same_hash; /* next with the same key in the map */
  TAILQ_ENTRY(topic) by_use;
  uint64_t hash, next_seq, began_wall_ns;
  TAILQ_ENTRY(topic) by_begin; /* if open */
  bool open;
  uint32_t count, go_version;
  uint64_t begun_ns, seq, gen, from_wall_ns, until_wall_ns;
  unsigned char stream[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  struct tc_feed_item *items, **items_end;
  size_t body_bytes;
  size_t len;
  char name[];
};

struct tc_feed_bundles {
  struct tc_feed_bundle_limits limits;
  struct tc_feed_bundle_sink sink;
  struct tb_mem mem;
  struct tb_map by_name; /* hash of the name -> struct topic */
  size_t topics;
  TAILQ_HEAD(, topic) by_use; /* least recently used first */
  TAILQ_HEAD(, topic) open;   /* oldest bundle first */
};

/* --- topics ------------------------------------------------------------------------------------ */

static uint64_t hash_name(const struct tc_feed_bundles *b, const char *name, size_t len) {
  return tb_hash(b->by_name.seed, name, len);
}

static void free_items(struct topic *t) {
  while (t->items != NULL) {
    struct tc_feed_item *item = t->items;
    t->items = item->next;
    free(item);
  }
  t->items_end = &t->items;
  t->body_bytes = 0;
}

static void topic_forget(struct tc_feed_bundles *b, struct topic *t) {
  uint64_t *place = tb_map_find(&b->by_name, t->hash);
  struct topic *first = (struct topic *)(uintptr_t)*place;

  if (first == t && t->same_hash == NULL) {
    tb_map_remove(&b->by_name, t->hash);
  } else if (first == t) {
    *place = (uintptr_t)t->same_hash;
  } else {
    while (first->same_hash != t) first = first->same_hash;
    first->same_hash = t->same_hash;
  }
  TAILQ_REMOVE(&b->by_use, t, by_use);
  free_items(t);
  free(t);
  b->topics--;
}

static tb_rc topic_make(struct tc_feed_bundles *b, const char *name, size_t len, uint64_t hash,
                        struct topic **out) {
  struct topic *t = calloc(1, sizeof *t + len + 1);
  uint64_t *place;
  tb_rc rc = t != NULL ? tb_map_put(&b->by_name, hash, &place, NULL) : TB_NOMEM;

  if (rc != TB_OK) {
    free(t);
    return rc;
  }
  t->same_hash = (struct topic *)(uintptr_t)*place;
  *place = (uintptr_t)t;
  t->hash = hash;
  t->next_seq = 1;
  t->began_wall_ns = b->limits.wall_ns();
  t->len = len;
  memcpy(t->name, name, len);
  t->items_end = &t->items;
  TAILQ_INSERT_TAIL(&b->by_use, t, by_use);
  b->topics++;
  *out = t;
  return TB_OK;
}

static void send_first(struct tc_feed_bundles *b);

/* Forgets the topic that was silent for longest, after sending its open bundle. */
static void make_room(struct tc_feed_bundles *b) {
  if (b->topics < b->limits.topics_max) return;
  struct topic *gone = TAILQ_FIRST(&b->by_use);
  while (gone->open) send_first(b);
  topic_forget(b, gone);
}

static tb_rc topic_find(struct tc_feed_bundles *b, const struct tc_feed_item *item,
                        struct topic **out) {
  char name[TC_FEED_TOPIC_BYTES];
  size_t len = tc_feed_topic(name, item->service, item->instance, item->slot);
  uint64_t hash = hash_name(b, name, len);
  struct topic *t = tb_map_at(&b->by_name, hash);

  while (t != NULL && (t->len != len || memcmp(t->name, name, len) != 0)) t = t->same_hash;
  if (t == NULL) {
    make_room(b);
    return topic_make(b, name, len, hash, out);
  }
  TAILQ_REMOVE(&b->by_use, t, by_use);
  TAILQ_INSERT_TAIL(&b->by_use, t, by_use);
  *out = t;
  return TB_OK;
}

/* --- bundles ----------------------------------------------------------------------------------- */

static void pack_envelope(struct topic *t, struct tc_feed_bundle *out) {
  Tracecollect__V1__FeedMessage envelope = TRACECOLLECT__V1__FEED_MESSAGE__INIT;

  envelope.seq = t->seq;
  envelope.count = t->count;
  envelope.began_wall_ns = t->began_wall_ns;
  envelope.stream = (ProtobufCBinaryData){ .len = sizeof t->stream, .data = t->stream };
  envelope.service = t->service;
  envelope.instance = t->instance;
  envelope.go_version = t->go_version;
  envelope.generation = t->gen;
  envelope.from_wall_ns = t->from_wall_ns;
  envelope.until_wall_ns = t->until_wall_ns;
  assert(tracecollect__v1__feed_message__get_packed_size(&envelope) <= sizeof out->envelope);
  out->envelope_len = tracecollect__v1__feed_message__pack(&envelope, out->envelope);
}

void tc_feed_bundle_write(const struct tc_feed_bundle *bundle, void *out) {
  unsigned char *at = out;

  memcpy(at, bundle->topic, bundle->topic_len + 1);
  at += bundle->topic_len + 1;
  memcpy(at, bundle->envelope, bundle->envelope_len);
  at += bundle->envelope_len;
  for (const struct tc_feed_item *item = bundle->items; item != NULL; item = item->next) {
    memcpy(at, item->bytes, item->len);
    at += item->len;
  }
}

/* Sends the oldest bundle. */
static void send_first(struct tc_feed_bundles *b) {
  struct topic *t = TAILQ_FIRST(&b->open);
  struct tc_feed_bundle bundle = { .topic = t->name,
                                   .topic_len = t->len,
                                   .body_bytes = t->body_bytes,
                                   .messages = t->count,
                                   .items = t->items };

  TAILQ_REMOVE(&b->open, t, by_begin);
  t->open = false;
  pack_envelope(t, &bundle);
  bundle.len = t->len + 1 + bundle.envelope_len + t->body_bytes;
  b->sink.send(b->sink.self, &bundle);
  free_items(t);
}

/* Messages of TC_FEED_GENERATION do not join: they must keep their place among the others. */
static bool joins(const struct tc_feed_bundles *b, const struct topic *t,
                  const struct tc_feed_item *item) {
  return item->slot != TC_FEED_GENERATION && item->missed == 0 && t->gen == item->gen &&
         memcmp(t->stream, item->stream, sizeof t->stream) == 0 &&
         t->body_bytes + item->len <= b->limits.body_bytes_max;
}

static void begin_bundle(struct tc_feed_bundles *b, struct topic *t,
                         const struct tc_feed_item *item, uint64_t now_ns) {
  t->next_seq += item->missed;
  t->seq = t->next_seq;
  t->count = 0;
  t->begun_ns = now_ns;
  t->gen = item->gen;
  t->from_wall_ns = item->from_wall_ns;
  t->until_wall_ns = item->until_wall_ns;
  memcpy(t->stream, item->stream, sizeof t->stream);
  memcpy(t->service, item->service, sizeof t->service);
  memcpy(t->instance, item->instance, sizeof t->instance);
  t->go_version = item->go_version;
  TAILQ_INSERT_TAIL(&b->open, t, by_begin);
  t->open = true;
}

static void widen_span(struct topic *t, const struct tc_feed_item *item) {
  if (item->from_wall_ns != 0 && (t->from_wall_ns == 0 || item->from_wall_ns < t->from_wall_ns))
    t->from_wall_ns = item->from_wall_ns;
  if (item->until_wall_ns > t->until_wall_ns) t->until_wall_ns = item->until_wall_ns;
}

tb_rc tc_feed_bundles_add(struct tc_feed_bundles *b, struct tc_feed_item *item, uint64_t now_ns) {
  struct topic *t;
  tb_rc rc = topic_find(b, item, &t);

  if (rc != TB_OK) {
    free(item);
    return rc;
  }
  if (t->open && !joins(b, t, item))
    while (t->open) send_first(b); /* sends all older ones, too */
  if (!t->open) begin_bundle(b, t, item, now_ns);
  t->next_seq += item->count;
  t->count += item->count;
  t->body_bytes += item->len;
  widen_span(t, item);
  item->next = NULL;
  *t->items_end = item;
  t->items_end = &item->next;
  return TB_OK;
}

uint64_t tc_feed_bundles_flush(struct tc_feed_bundles *b, uint64_t now_ns) {
  const struct topic *first;

  while ((first = TAILQ_FIRST(&b->open)) != NULL && now_ns - first->begun_ns >= b->limits.wait_ns)
    send_first(b);
  return first != NULL ? first->begun_ns + b->limits.wait_ns : UINT64_MAX;
}

void tc_feed_bundles_flush_all(struct tc_feed_bundles *b) {
  while (!TAILQ_EMPTY(&b->open)) send_first(b);
}

tb_rc tc_feed_bundles_new(const struct tc_feed_bundle_limits *limits,
                          struct tc_feed_bundle_sink sink, struct tc_feed_bundles **out) {
  struct tc_feed_bundles *b = calloc(1, sizeof *b);

  if (b == NULL) return TB_NOMEM;
  b->limits = *limits;
  b->sink = sink;
  tb_mem_init(&b->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_map_init(&b->by_name, &b->mem, tb_seed());
  TAILQ_INIT(&b->by_use);
  TAILQ_INIT(&b->open);
  *out = b;
  return TB_OK;
}

void tc_feed_bundles_free(struct tc_feed_bundles *b) {
  if (b == NULL) return;
  while (!TAILQ_EMPTY(&b->by_use)) topic_forget(b, TAILQ_FIRST(&b->by_use));
  tb_map_fini(&b->by_name);
  free(b);
}

size_t tc_feed_bundles_topics(const struct tc_feed_bundles *b) {
  return b->topics;
}
