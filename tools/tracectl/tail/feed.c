/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the feed. nng silently drops what a slow subscriber does not take; the sequence of each topic shows
 * it. A sequence that began again means that the collector was restarted: messages before that are lost. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "proto/feed.pb-c.h"
#include "proto/unpack.h"
#include "tools/tracectl/remote/feed.h"
#include "tools/tracectl/tail/message.h"
#include "tools/tracectl/tail/tail.h"
#include "tools/tracectl/term/tracectl.h"

struct topic {
  struct topic *next;
  uint64_t began_wall_ns, seq; /* expected next */
  char name[];
};

struct subscriber {
  const struct tk_tail_ask *ask;
  struct tk_lines *lines;
  struct tk_feed *feed;
  struct tb_arena arena;
  struct topic *topics;
};

static struct topic *topic_of(struct subscriber *s, const char *name) {
  size_t len = strlen(name);
  struct topic *t;

  for (struct topic **at = &s->topics; (t = *at) != NULL; at = &t->next) {
    if (strcmp(t->name, name) != 0) continue;
    *at = t->next;
    t->next = s->topics;
    return s->topics = t;
  }
  t = calloc(1, sizeof *t + len + 1);
  if (t == NULL) return NULL;
  memcpy(t->name, name, len);
  t->next = s->topics;
  return s->topics = t;
}

static tb_rc count(struct subscriber *s, const char *name, const Tracecollect__V1__FeedMessage *m) {
  struct topic *t = topic_of(s, name);

  if (t == NULL) return TB_NOMEM;
  if (t->began_wall_ns == m->began_wall_ns && m->seq > t->seq)
    tk_lines_lost(s->lines, m->seq - t->seq, name);
  t->began_wall_ns = m->began_wall_ns;
  t->seq = m->seq + m->count;
  return TB_OK;
}

static bool is_wanted(const struct tk_tail_ask *ask, const Tracecollect__V1__FeedMessage *m) {
  if (!tk_tail_wants(ask, m->service, m->instance,
                     m->stream.len == 16 ? m->stream.data : ask->selector.stream))
    return false;
  return (m->n_reports > 0 && ask->reports) || (m->n_generations > 0 && ask->generations) ||
         (m->n_alerts > 0 && ask->alerts) || (m->n_events > 0 && ask->events);
}

static tb_rc take_message(struct subscriber *s, const char *bytes, size_t len) {
  ProtobufCAllocator allocator = tp_arena_allocator(&s->arena);
  const char *nul = memchr(bytes, '\0', len);
  tb_rc rc = TB_OK;

  if (nul == NULL) return tk_lines_note(s->lines, true, "a message without a topic"), TB_OK;
  size_t topic_len = (size_t)(nul - bytes) + 1;
  Tracecollect__V1__FeedMessage *m = tracecollect__v1__feed_message__unpack(
      &allocator, len - topic_len, (const uint8_t *)bytes + topic_len);
  if (m == NULL)
    tk_lines_note(s->lines, true, "%.200s: a message that cannot be read", bytes);
  else if (is_wanted(s->ask, m)) {
    rc = count(s, bytes, m);
    if (rc == TB_OK) rc = tk_message_print(s->lines, bytes, m);
  }
  tb_arena_reset(&s->arena);
  return rc;
}

static tb_rc receive(struct subscriber *s, struct tb_diag *diag) {
  bool written = false;

  for (;;) {
    nng_msg *msg;
    /* available messages first; flush before waiting */
    tb_rc rc = tk_feed_receive(s->feed, !written, diag, &msg);
    if (rc != TB_OK && rc != TB_AGAIN) return rc;
    written = rc == TB_OK;
    if (rc == TB_AGAIN) {
      tk_lines_flush(s->lines);
      continue;
    }
    rc = take_message(s, nng_msg_body(msg), nng_msg_len(msg));
    nng_msg_free(msg);
    TB_TRY(rc);
  }
}

tb_rc tk_tail_feed(const struct tk_tail_ask *ask, struct tk_lines *lines, struct tb_diag *diag) {
  struct subscriber s = { .ask = ask, .lines = lines };
  const struct timespec pause = { .tv_nsec = 250000000 };
  bool connected = false;
  tb_rc rc;

  tb_arena_init(&s.arena, &tk_mem, 1 << 20);
  for (;;) {
    tb_diag_clear(diag);
    rc = tk_feed_open(&ask->client, ask->topic, diag, &s.feed);
    if (rc == TB_OK) {
      /* After the subscription: what begins meanwhile is shown twice rather than never. */
      bool has_past = !connected && ask->selector.since_wall_ns != 0;
      connected = true;
      if (has_past) rc = tk_tail_findings(ask, lines, diag);
      if (rc == TB_OK) rc = receive(&s, diag);
      tk_feed_close(s.feed);
      if (rc == TB_IO) tk_lines_note(lines, false, "%s; waiting for the collector", diag->text);
    }
    if (!connected || (rc != TB_IO && rc != TB_NOTFOUND)) break;
    nanosleep(&pause, NULL);
  }
  for (struct topic *t = s.topics, *next; t != NULL; t = next) {
    next = t->next;
    free(t);
  }
  tb_arena_fini(&s.arena);
  return rc;
}
