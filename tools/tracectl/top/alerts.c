/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/top/alerts.h"

#include <nng/nng.h>

#include <nng/protocol/pubsub0/sub.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "feed/topic.h"
#include "proto/unpack.h"
#include "tools/tracectl/remote/link.h"

enum {
  TOPICS_MAX = 2048,
  MESSAGE_BYTES_MAX = 1 << 20,
  QUIET_MS = 200, /* then new topics are looked for, and the end */
  AGAIN_MS = 1000,
  LOST_MS = 1500,
};

struct tk_alerts {
  struct tk_client_args args;
  struct tk_alert_sink sink;
  pthread_t thread;
  /* the thread's */
  struct tk_link *link;
  struct tb_mem mem;
  struct tb_arena arena;
  size_t subscribed;    /* of topics, on this connection */
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t wake;
  bool stopping;
  char *topic[TOPICS_MAX];
  size_t topics;
};

/* ---- what is followed ---- */

void tk_alerts_follow(struct tk_alerts *a, const char *service, const char *instance) {
  char topic[TC_FEED_TOPIC_BYTES];
  size_t i = 0;

  tc_feed_topic(topic, service, instance, TC_FEED_ALERT);
  pthread_mutex_lock(&a->lock);
  while (i < a->topics && strcmp(a->topic[i], topic) != 0) i++;
  if (i == a->topics && i < TOPICS_MAX && (a->topic[i] = strdup(topic)) != NULL) a->topics++;
  pthread_mutex_unlock(&a->lock);
}

static int subscribe_new(struct tk_alerts *a) {
  int rv = 0;

  pthread_mutex_lock(&a->lock);
  for (; a->subscribed < a->topics && rv == 0; a->subscribed++)
    rv = nng_socket_set(a->link->socket, NNG_OPT_SUB_SUBSCRIBE, a->topic[a->subscribed],
                        strlen(a->topic[a->subscribed]));
  pthread_mutex_unlock(&a->lock);
  return rv;
}

/* ---- what is heard ---- */

static void take(struct tk_alerts *a, const char *bytes, size_t len) {
  ProtobufCAllocator allocator = tp_arena_allocator(&a->arena);
  const char *nul = memchr(bytes, '\0', len);

  if (nul == NULL) return;
  size_t topic_len = (size_t)(nul - bytes) + 1;
  const Tracecollect__V1__FeedMessage *m = tracecollect__v1__feed_message__unpack(
      &allocator, len - topic_len, (const uint8_t *)bytes + topic_len);
  for (size_t i = 0; m != NULL && i < m->n_alerts; i++) a->sink.alert(a->sink.self, m->alerts[i]);
  tb_arena_reset(&a->arena);
}

static int make_socket(nng_socket *socket, void *self) {
  int rv = nng_sub0_open(socket);

  (void)self;
  if (rv == 0) rv = nng_socket_set_size(*socket, NNG_OPT_RECVMAXSZ, MESSAGE_BYTES_MAX);
  return rv == 0 ? nng_socket_set_ms(*socket, NNG_OPT_RECVTIMEO, QUIET_MS) : rv;
}

static bool is_stopping(struct tk_alerts *a) {
  pthread_mutex_lock(&a->lock);
  bool stopping = a->stopping;
  pthread_mutex_unlock(&a->lock);
  return stopping;
}

static bool is_lost(struct tk_link *link) {
  pthread_mutex_lock(&link->lock);
  bool lost = !link->connected && tc_is_past(tc_after(link->lost_at, LOST_MS));
  pthread_mutex_unlock(&link->lock);
  return lost;
}

static tb_rc hear(struct tk_alerts *a, struct tb_diag *diag) {
  while (!is_stopping(a)) {
    nng_msg *msg;
    int rv = subscribe_new(a);
    if (rv == 0) rv = nng_recvmsg(a->link->socket, &msg, 0);
    if (rv == 0) {
      take(a, nng_msg_body(msg), nng_msg_len(msg));
      nng_msg_free(msg);
    } else if (rv != NNG_ETIMEDOUT) {
      return tk_link_fail(a->link, rv, diag);
    } else if (is_lost(a->link)) {
      return tb_fail(diag, TB_IO, "the connection was lost");
    }
  }
  return TB_OK;
}

/* ---- the thread ---- */

static bool pause_before_again(struct tk_alerts *a) {
  struct timespec until = tc_from_now(AGAIN_MS);

  pthread_mutex_lock(&a->lock);
  while (!a->stopping && pthread_cond_timedwait(&a->wake, &a->lock, &until) == 0) continue;
  bool goes_on = !a->stopping;
  pthread_mutex_unlock(&a->lock);
  return goes_on;
}

static void *run(void *self) {
  struct tk_alerts *a = self;

  do {
    struct tb_diag diag;
    tb_diag_clear(&diag);
    a->subscribed = 0;
    tb_rc rc = tk_link_open(&a->args, TK_SOCKET_FEED, make_socket, a, &diag, &a->link);
    if (rc == TB_OK) {
      a->sink.trouble(a->sink.self, NULL);
      rc = hear(a, &diag);
      tk_link_close(a->link);
    }
    if (rc != TB_OK) a->sink.trouble(a->sink.self, diag.rc != TB_OK ? diag.text : tb_rc_text(rc));
  } while (pause_before_again(a));
  return NULL;
}

static void free_alerts(struct tk_alerts *a) {
  for (size_t i = 0; i < a->topics; i++) free(a->topic[i]);
  tb_arena_fini(&a->arena);
  pthread_cond_destroy(&a->wake);
  pthread_mutex_destroy(&a->lock);
  free(a);
}

tb_rc tk_alerts_start(const struct tk_client_args *args, struct tk_alert_sink sink,
                      struct tb_diag *diag, struct tk_alerts **out) {
  struct tk_alerts *a = calloc(1, sizeof *a);

  if (a == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  a->args = *args;
  a->sink = sink;
  tb_mem_init(&a->mem, tb_mem_libc, NULL, (size_t)64 * MESSAGE_BYTES_MAX);
  tb_arena_init(&a->arena, &a->mem, 64 << 10);
  pthread_mutex_init(&a->lock, NULL);
  tc_cond_init(&a->wake);
  if (pthread_create(&a->thread, NULL, run, a) != 0) {
    free_alerts(a);
    return tb_fail(diag, TB_NOMEM, "no thread");
  }
  *out = a;
  return TB_OK;
}

bool tk_alerts_stop(struct tk_alerts *a, const struct timespec *until) {
  pthread_mutex_lock(&a->lock);
  a->stopping = true;
  pthread_cond_signal(&a->wake);
  pthread_mutex_unlock(&a->lock);
  if (pthread_timedjoin_np(a->thread, NULL, until) != 0) {
    pthread_detach(a->thread);
    return false;
  }
  free_alerts(a);
  return true;
}
