/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the feed as live events: {"topic":...} and the fields of FeedMessage. The event's kind is that of the topic:
 * alert, generation, report/stw, event/logs. The feed is not read while there are no readers, and only messages that a
 * reader wants are converted. */
#include <stdlib.h>
#include <string.h>

#include "collector/http/private.h"
#include "proto/feed.pb-c.h"
#include "proto/json.h"
#include "proto/unpack.h"

enum { MESSAGE_MEMORY_MAX = 64 << 20, TURN_NS = 1000000 };

struct tc__http_feed {
  uv_async_t wake;
  struct tc_feed_reader *reader;
  struct tb_mem mem;
  struct tb_arena arena;
  struct tb_buf text;
};

/* Returns KIND of SERVICE/INSTANCE/KIND; service and instance have no slashes. */
static const char *kind_of(const char *topic) {
  const char *slash = strchr(topic, '/');

  slash = slash != NULL ? strchr(slash + 1, '/') : NULL;
  return slash != NULL ? slash + 1 : topic;
}

static void publish(struct tc_http *http, const struct tc_feed_message *message) {
  struct tc__http_feed *f = http->feed;
  const char *topic = message->bytes, *kind = kind_of(topic);
  size_t head = message->topic_len + 1;

  if (!tc_live_wanted(http->live, kind)) return;
  ProtobufCAllocator allocator = tp_arena_allocator(&f->arena);
  const Tracecollect__V1__FeedMessage *said = tracecollect__v1__feed_message__unpack(
      &allocator, message->len - head, (const uint8_t *)message->bytes + head);
  if (said != NULL) {
    tb_buf_text(&f->text, "{\"topic\":");
    tp_json_text(&f->text, topic);
    tb_buf_byte(&f->text, ',');
    tp_json_fields(&f->text, &said->base);
    tb_buf_byte(&f->text, '}');
    if (f->text.rc == TB_OK) tc_live_publish(http->live, kind, f->text.data, f->text.len);
  }
  tb_buf_clear(&f->text);
  tb_arena_reset(&f->arena);
}

/* Publishes for TURN_NS at most; the rest follows in the loop's next turn. */
static void on_wake(uv_async_t *handle) {
  struct tc_http *http = handle->data;
  uint64_t end_ns = uv_hrtime() + TURN_NS;
  struct tc_feed_message *message;

  if (http->closing) return;
  while ((message = tc_feed_reader_take(http->feed->reader)) != NULL) {
    publish(http, message);
    tc_feed_message_release(message);
    if (uv_hrtime() < end_ns) continue;
    uv_async_send(handle);
    break;
  }
  tc__live_pump_all(http);
}

static void wake_up(void *self) {
  uv_async_send(self);
}

static bool wants_reports(const struct tc_http *http) {
  bool wants = false;

  for (unsigned kind = 0; kind < TO_ANALYSIS_KINDS; kind++)
    wants |=
        tc_live_wanted(http->live, tc_feed_slot_name((enum tc_feed_slot)(TC_FEED_REPORTS + kind)));
  return wants;
}

void tc__feed_listen(struct tc_http *http) {
  if (http->feed == NULL || http->closing) return;
  tc_feed_reader_want_reports(http->feed->reader, wants_reports(http));
  tc_feed_reader_listen(http->feed->reader, tc_live_readers(http->live) > 0);
}

tb_rc tc__feed_open(struct tc_http *http) {
  struct tc__http_feed *f;
  tb_rc rc;

  if (http->env.feed == NULL) return TB_OK;
  f = calloc(1, sizeof *f);
  if (f == NULL) return TB_NOMEM;
  rc = tc_feed_reader_new(wake_up, &f->wake, &f->reader);
  if (rc == TB_OK) rc = tc_feed_attach(http->env.feed, f->reader);
  if (rc != TB_OK) {
    tc_feed_reader_free(f->reader);
    free(f);
    return rc;
  }
  uv_async_init(http->env.tls->uv, &f->wake, on_wake);
  f->wake.data = http;
  tb_mem_init(&f->mem, tb_mem_libc, NULL, MESSAGE_MEMORY_MAX);
  tb_arena_init(&f->arena, &f->mem, 64 << 10);
  tb_buf_init(&f->text, &f->mem);
  http->feed = f;
  return TB_OK;
}

void tc__feed_close(struct tc_http *http) {
  if (http->feed != NULL) uv_close((uv_handle_t *)&http->feed->wake, NULL);
}

void tc__feed_free(struct tc_http *http) {
  struct tc__http_feed *f = http->feed;

  if (f == NULL) return;
  tc_feed_reader_free(f->reader);
  tb_buf_fini(&f->text);
  tb_arena_fini(&f->arena);
  free(f);
}
