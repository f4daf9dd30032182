/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/top/alerts.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text/hex.h"
#include "tools/tracectl/term/tracectl.h"

enum { AGAIN_MS = 1000, LINE_BYTES_MAX = 1 << 20 };

struct tk_alerts {
  struct tk_client_args args;
  struct tk_selector selector;
  struct tk_alert_sink sink;
  pthread_t thread;
  struct tb_buf line;   /* used by the thread only: the current line so far */
  char last_id[128];    /* of the last event, to continue after a reconnect */
  pthread_mutex_t lock; /* protects the fields below */
  pthread_cond_t wake;
  bool stopping;
  struct tk_client *client; /* the connection in use */
};

static bool is(const json_t *message, const char *name, const char *wanted) {
  const char *text = json_string_value(json_object_get(message, name));

  return text != NULL && strcmp(text, wanted) == 0;
}

static bool is_wanted(const struct tk_selector *s, const json_t *message) {
  char hex[2 * sizeof s->stream + 1];

  return (s->service == NULL || is(message, "service", s->service)) &&
         (s->instance == NULL || is(message, "instance", s->instance)) &&
         (!s->has_stream || is(message, "stream", tb_hex(s->stream, sizeof s->stream, hex)));
}

/* Parses a FeedMessage in JSON. */
static void take_message(struct tk_alerts *a, const char *text, size_t len) {
  json_t *message = json_loadb(text, len, 0, NULL), *alert;
  bool wanted = is_wanted(&a->selector, message);
  size_t i;

  json_array_foreach(json_object_get(message, "alerts"), i, alert) {
    const char *words = json_string_value(json_object_get(alert, "text"));
    uint64_t wall_ns = (uint64_t)json_integer_value(json_object_get(alert, "begin_wall_ns"));
    if (wanted && words != NULL) a->sink.alert(a->sink.self, wall_ns, words);
  }
  json_decref(message);
}

static bool starts(const struct tb_buf *line, const char *with) {
  return line->len > strlen(with) && memcmp(line->data, with, strlen(with)) == 0;
}

static tb_rc end_line(struct tk_alerts *a) {
  struct tb_buf *line = &a->line;

  if (line->rc != TB_OK || line->len > LINE_BYTES_MAX) return TB_NOMEM;
  if (starts(line, "data: "))
    take_message(a, (const char *)line->data + 6, line->len - 6);
  else if (starts(line, "id: "))
    snprintf(a->last_id, sizeof a->last_id, "%.*s", (int)(line->len - 4), line->data + 4);
  tb_buf_clear(line);
  return TB_OK;
}

/* The first byte shows that the collector answers. */
static tb_rc take_bytes(void *self, const unsigned char *bytes, size_t n) {
  struct tk_alerts *a = self;
  const unsigned char *end;

  a->sink.trouble(a->sink.self, NULL);
  for (; (end = memchr(bytes, '\n', n)) != NULL; n -= (size_t)(end + 1 - bytes), bytes = end + 1) {
    tb_buf_add(&a->line, bytes, (size_t)(end - bytes));
    TB_TRY(end_line(a));
  }
  tb_buf_add(&a->line, bytes, n);
  return TB_OK;
}

/* Returns false if the thread is to end. */
static bool set_client(struct tk_alerts *a, struct tk_client *client) {
  pthread_mutex_lock(&a->lock);
  a->client = client;
  bool goes_on = !a->stopping;
  pthread_mutex_unlock(&a->lock);
  return goes_on;
}

static tb_rc hear(struct tk_alerts *a, struct tb_diag *diag) {
  Tracecollect__V1__LiveRequest ask = TRACECOLLECT__V1__LIVE_REQUEST__INIT;
  char kinds[] = "alert", last_id[sizeof a->last_id];
  struct tk_client *client;
  tb_rc rc = TB_END;

  memcpy(last_id, a->last_id, sizeof last_id); /* copied: it changes during the request */
  ask.kinds = kinds;
  ask.last_event_id = last_id;

  TB_TRY(tk_client_open(&a->args, diag, &client));
  tb_buf_clear(&a->line);
  if (set_client(a, client)) rc = tk_client_live(client, &ask, take_bytes, a, diag);
  (void)set_client(a, NULL);
  tk_client_close(client);
  return rc == TB_OK ? tb_fail(diag, TB_IO, "the connection was lost") : rc;
}

static bool pause_before_again(struct tk_alerts *a) {
  struct timespec until = tc_from_now(AGAIN_MS);

  pthread_mutex_lock(&a->lock);
  while (!a->stopping && pthread_cond_timedwait(&a->wake, &a->lock, &until) == 0) continue;
  bool goes_on = !a->stopping;
  pthread_mutex_unlock(&a->lock);
  return goes_on;
}

static void *run_alerts(void *self) {
  struct tk_alerts *a = self;

  do {
    struct tb_diag diag;
    tb_diag_clear(&diag);
    tb_rc rc = hear(a, &diag);
    a->sink.trouble(a->sink.self, diag.rc != TB_OK ? diag.text : tb_rc_text(rc));
  } while (pause_before_again(a));
  return NULL;
}

static void free_alerts(struct tk_alerts *a) {
  tb_buf_fini(&a->line);
  pthread_cond_destroy(&a->wake);
  pthread_mutex_destroy(&a->lock);
  free(a);
}

tb_rc tk_alerts_start(const struct tk_client_args *args, const struct tk_selector *selector,
                      struct tk_alert_sink sink, struct tb_diag *diag, struct tk_alerts **out) {
  struct tk_alerts *a = calloc(1, sizeof *a);

  if (a == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  a->args = *args;
  a->selector = *selector;
  a->sink = sink;
  tb_buf_init(&a->line, &tk_mem);
  pthread_mutex_init(&a->lock, NULL);
  tc_cond_init(&a->wake);
  if (pthread_create(&a->thread, NULL, run_alerts, a) != 0) {
    free_alerts(a);
    return tb_fail(diag, TB_NOMEM, "no thread");
  }
  *out = a;
  return TB_OK;
}

bool tk_alerts_stop(struct tk_alerts *a, const struct timespec *until) {
  pthread_mutex_lock(&a->lock);
  a->stopping = true;
  if (a->client != NULL) tk_client_stop(a->client);
  pthread_cond_signal(&a->wake);
  pthread_mutex_unlock(&a->lock);
  if (pthread_timedjoin_np(a->thread, NULL, until) != 0) {
    pthread_detach(a->thread);
    return false;
  }
  free_alerts(a);
  return true;
}
