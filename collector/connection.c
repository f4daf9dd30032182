/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/connection.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "collector/ingest.h"
#include "collector/journal.h"

enum { RETRY_MS = 1, SILENT_HEARTBEATS = 3, FRAME_BYTES_MAX = 1024, CREDIT_STEPS = 8 };

struct connection {
  struct connection *next, **at; /* of the set */
  struct tc_connections *set;
  struct tc_tls *tls; /* NULL: gone, a DETACH waits */
  uint64_t id;
  struct tc_ingest ingest;
  struct tb_diag diag;
  bool open;     /* handshake done */
  bool attached; /* the store knows us: a DETACH is owed */
  bool waiting;  /* to be offered again by the retry timer */
  bool ack_due, ending;
  bool leaving; /* GOAWAY was sent: nothing more is read, the acks that are due still go out */
  bool dirty;   /* the store spoke of us since the last flush */
  struct connection *dirty_next;
  uint64_t submitted_seq, durable_seq;
  uint64_t released;    /* record bytes that left memory */
  uint64_t credit_told; /* last credit mark sent */
  uint64_t opened_ms, heard_ms, spoke_ms;
  char identity[TC_IDENTITY_BYTES + 1];
  char peer[64];
};

struct tc_connections {
  struct tc_connections_env env;
  uv_timer_t retry;
  struct tb_mem mem;
  struct tb_map by_id;
  struct connection *first;
  struct connection *dirty; /* empty between two drains of the mailbox */
  size_t count;
  uint64_t next_id;
  bool store_failed;
};

static uint64_t now_ms(const struct tc_connections *set) {
  return uv_now(set->env.tls->uv);
}
static uint64_t to_ms(uint64_t ns) {
  return ns / 1000000;
}

/* --- frames out -------------------------------------------------------------------------------- */

static void send_message(struct connection *c, enum tp_kind kind, const ProtobufCMessage *message) {
  unsigned char bytes[TP_HEADER_BYTES + FRAME_BYTES_MAX];
  size_t len = protobuf_c_message_get_packed_size(message);

  assert(len <= FRAME_BYTES_MAX && "our own messages are small");
  protobuf_c_message_pack(message, bytes + TP_HEADER_BYTES);
  struct tp_frame frame = {
    .kind = kind, .flags = TP_CRITICAL, .payload = bytes + TP_HEADER_BYTES, .len = (uint32_t)len
  };
  tp_frame_head(&frame, bytes);
  c->spoke_ms = now_ms(c->set);
  tc_tls_send(c->tls, bytes, TP_HEADER_BYTES + len);
}

static uint64_t credit_now(const struct connection *c) {
  return c->released + c->set->env.config->agents_credit;
}

static void send_welcome(struct connection *c) {
  const struct tc_config *config = c->set->env.config;
  Tracecollect__V1__Welcome m = TRACECOLLECT__V1__WELCOME__INIT;

  m.major = 1;
  m.durable_seq = c->durable_seq;
  m.credit_bytes = credit_now(c);
  m.heartbeat_ms = (uint32_t)to_ms(config->agents_heartbeat);
  m.level = config->top_sync;
  m.generation_bytes_max = config->agents_generation_bytes_max;
  send_message(c, TP_WELCOME, &m.base);
}

/* Credit goes with the acks; alone it is worth a frame only in steps. That cannot starve an agent: one
 * that has used up what it was told has more than the untold rest still in our memory. */
static bool credit_is_worth_a_frame(const struct connection *c) {
  return credit_now(c) - c->credit_told >= c->set->env.config->agents_credit / CREDIT_STEPS;
}

static void send_ack(struct connection *c) {
  Tracecollect__V1__Ack m = TRACECOLLECT__V1__ACK__INIT;

  if (!c->ack_due && !credit_is_worth_a_frame(c)) return;
  if (c->ending || c->tls == NULL || tc_tls_unsent(c->tls) > 0) return; /* when that has gone out */
  c->ack_due = false;
  c->credit_told = m.credit_bytes = credit_now(c);
  m.durable_seq = c->durable_seq;
  tc_ingest_credit(&c->ingest, m.credit_bytes);
  tc_metric_add(&c->set->env.metrics->acks_sent_total, 1);
  send_message(c, TP_ACK, &m.base);
}

static void send_heartbeat(struct connection *c) {
  Tracecollect__V1__Heartbeat m = TRACECOLLECT__V1__HEARTBEAT__INIT;
  struct timespec wall;

  clock_gettime(CLOCK_REALTIME, &wall);
  m.wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
  m.mono_ns = uv_hrtime();
  send_message(c, TP_HEARTBEAT, &m.base);
}

static void end_with(struct connection *c, const char *why) {
  c->ending = true;
  c->waiting = false;
  if (c->tls != NULL) tc_tls_close(c->tls, why);
}

static void refuse(struct connection *c, Tracecollect__V1__RefuseCode code, bool permanent,
                   const char *reason) {
  Tracecollect__V1__Refuse m = TRACECOLLECT__V1__REFUSE__INIT;
  char text[TC_ESCAPE_MAX + 1], who[TC_ESCAPE_MAX + 1];

  tc_escape(text, reason, strlen(reason));
  tc_log(TC_WARN, "agents", "peer=%s identity=\"%s\": refused: %s", c->peer,
         tc_escape(who, c->identity, strlen(c->identity)), text);
  tc_metric_add(&c->set->env.metrics->peers_refused_total, 1);
  m.code = code;
  m.permanent = permanent;
  m.reason = text;
  send_message(c, TP_REFUSE, &m.base);
  end_with(c, text);
}

/* --- to the store ------------------------------------------------------------------------------ */

static void on_retry(uv_timer_t *timer);

static void wait_for_store(struct connection *c) {
  struct tc_connections *set = c->set;

  if (!c->waiting) tc_metric_add(&set->env.metrics->holds_total, 1);
  c->waiting = true;
  if (!uv_is_active((uv_handle_t *)&set->retry))
    uv_timer_start(&set->retry, on_retry, RETRY_MS, RETRY_MS);
}

/* Owns nothing on failure: fill() sets the message up anew each time. */
static tb_rc submit(struct connection *c, struct tc_submit *msg) {
  struct tc_connections *set = c->set;

  if (msg == NULL) return TB_AGAIN;
  msg->conn = c->id;
  msg->loop = set->env.loop;
  return set->env.store.submit(set->env.store.self, msg) ? TB_OK : TB_AGAIN;
}

static bool name_is_valid(const char *name) {
  size_t len = strlen(name);

  if (len < 1 || len > TC_NAME_MAX) return false;
  for (; *name != '\0'; name++) {
    bool plain = (*name >= 'A' && *name <= 'Z') || (*name >= 'a' && *name <= 'z') ||
                 (*name >= '0' && *name <= '9');
    if (!plain && strchr("._:-", *name) == NULL) return false;
  }
  return true;
}

/* TB_REFUSED: refused by name, the connection is ending. */
static tb_rc on_hello(void *self, const Tracecollect__V1__Hello *hello) {
  struct connection *c = self;
  char reason[96];

  if (hello->major != 1) {
    snprintf(reason, sizeof reason, "protocol version %" PRIu32 ", this collector speaks 1",
             hello->major);
    refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_VERSION, true, reason);
    return TB_REFUSED;
  }
  if (hello->stream.len != TC_STREAM_BYTES) {
    refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_PROTOCOL, true, "stream id is not 16 bytes");
    return TB_REFUSED;
  }
  if (!name_is_valid(hello->service) || !name_is_valid(hello->instance)) {
    refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_NAME, true,
           "service and instance must be 1 to 64 of A-Z a-z 0-9 . _ : -");
    return TB_REFUSED;
  }
  if (c->set->store_failed) {
    refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_STORAGE, false, "cannot store at this time");
    return TB_REFUSED;
  }

  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_ATTACH);
  if (msg != NULL) {
    memcpy(msg->attach.stream, hello->stream.data, TC_STREAM_BYTES);
    strcpy(msg->attach.service, hello->service);
    strcpy(msg->attach.instance, hello->instance);
    snprintf(msg->attach.identity, sizeof msg->attach.identity, "%s", c->identity);
    snprintf(msg->attach.peer, sizeof msg->attach.peer, "%s", c->peer);
    msg->attach.loop = c->set->env.loop;
  }
  tb_rc rc = submit(c, msg);
  if (rc == TB_OK)
    c->attached = true;
  else
    tc_submit_free(msg);
  return rc;
}

static tb_rc on_record(void *self, struct tc_record *record) {
  struct connection *c = self;
  struct tc_metrics *metrics = c->set->env.metrics;
  struct tc_submit *msg;
  uint64_t seq = record->seq, bytes = (uint64_t)TP_HEADER_BYTES + record->len;

  if (c->set->store_failed) return TB_AGAIN;
  msg = tc_submit_new(TC_SUBMIT_RECORD);
  if (msg != NULL) msg->record = record;
  if (submit(c, msg) != TB_OK) {
    if (msg != NULL) msg->record = NULL; /* stays ingest's */
    tc_submit_free(msg);
    return TB_AGAIN;
  }
  c->submitted_seq = seq;
  tc_metric_add(&metrics->records_received_total, 1);
  tc_metric_add(&metrics->record_received_bytes_total, bytes);
  return TB_OK;
}

static void on_known(void *self, uint64_t bytes) {
  struct connection *c = self;

  c->released += bytes;
  c->ack_due = true;
  tc_metric_add(&c->set->env.metrics->records_known_total, 1);
}

/* Figures for status: when the store is too busy for them, the next heartbeat brings newer ones. */
static void on_heartbeat(void *self, const Tracecollect__V1__Heartbeat *heartbeat) {
  struct connection *c = self;
  const Tracecollect__V1__Counters *from = heartbeat->counters;
  struct tc_submit *msg;

  if (from == NULL || c->ingest.state != TC_INGEST_STREAMING) return;
  msg = tc_submit_new(TC_SUBMIT_HEARTBEAT);
  if (msg == NULL) return;
  msg->counters = (struct tc_counters){
    .stream = c->ingest.stream,
    .produced_batches = from->produced_batches,
    .produced_bytes = from->produced_bytes,
    .spool_bytes = from->spool_bytes,
    .spool_batches = from->spool_batches,
    .lost_batches = from->lost_batches,
    .lost_bytes = from->lost_bytes,
    .lost_generations = from->lost_generations,
  };
  if (submit(c, msg) != TB_OK) tc_submit_free(msg);
}

/* --- from TLS ---------------------------------------------------------------------------------- */

static tb_rc take_bytes(struct connection *c, const unsigned char *bytes, size_t n, size_t *used) {
  tb_rc rc;

  if (c->ending || c->leaving) {
    *used = n;
    return TB_AGAIN;
  }
  rc = tc_ingest_bytes(&c->ingest, bytes, n, used);
  switch (rc) {
  case TB_OK: return TB_OK;
  case TB_AGAIN:
    if (c->ingest.state != TC_INGEST_ATTACHING) wait_for_store(c);
    return TB_AGAIN;
  case TB_REFUSED: break; /* said by on_hello() */
  case TB_BUDGET:
    refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET, false, c->diag.text);
    break;
  case TB_NOMEM:
    refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET, false, "collector is out of memory");
    break;
  default: refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_PROTOCOL, true, c->diag.text); break;
  }
  return rc;
}

static tb_rc on_bytes(void *self, const unsigned char *bytes, size_t n, size_t *used) {
  struct connection *c = self;
  tb_rc rc;

  c->heard_ms = now_ms(c->set);
  rc = take_bytes(c, bytes, n, used);
  if (c->ack_due) send_ack(c);
  return rc;
}

static void on_open(void *self) {
  struct connection *c = self;
  struct tc_metrics *metrics = c->set->env.metrics;

  c->open = true;
  c->opened_ms = c->heard_ms = c->spoke_ms = now_ms(c->set);
  tc_metric_add(&metrics->connections_total, 1);
  tc_metric_add(&metrics->connections, 1);
  if (tc_tls_identity(tc_tls_ssl(c->tls), "agent", &c->diag, c->identity) != TB_OK)
    refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_IDENTITY, true, c->diag.text);
}

static void on_drained(void *self) {
  send_ack(self);
}

static void forget(struct connection *c) {
  assert(!c->dirty);
  *c->at = c->next;
  if (c->next != NULL) c->next->at = c->at;
  c->set->count--;
  free(c);
}

/* The store must hear that we are gone; if it has no room, what is left of us waits. */
static bool detach(struct connection *c) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_DETACH);

  if (submit(c, msg) == TB_OK) return true;
  tc_submit_free(msg);
  return false;
}

static void on_closed(void *self, const char *why) {
  struct connection *c = self;
  struct tc_metrics *metrics = c->set->env.metrics;
  char text[TC_ESCAPE_MAX + 1];

  c->tls = NULL;
  c->ending = true;
  tc_ingest_fini(&c->ingest);
  tb_map_remove(&c->set->by_id, c->id);
  if (!c->open) {
    tc_metric_add(&metrics->handshakes_failed_total, 1);
    tc_log(TC_WARN, "agents", "peer=%s: TLS handshake failed: %s", c->peer,
           tc_escape(text, why, strlen(why)));
  } else {
    tc_metric_sub(&metrics->connections, 1);
    tc_log(TC_INFO, "agents", "peer=%s identity=%s: closed%s%s", c->peer, c->identity,
           why[0] != '\0' ? ": " : "", tc_escape(text, why, strlen(why)));
  }
  if (!c->attached || detach(c))
    forget(c);
  else
    wait_for_store(c);
}

/* --- replies ----------------------------------------------------------------------------------- */

static void go_on_reading(struct connection *c) {
  size_t used;

  c->waiting = false;
  if (c->ending || c->leaving) return;
  if (take_bytes(c, NULL, 0, &used) == TB_OK) tc_tls_resume(c->tls);
  if (c->ack_due) send_ack(c);
}

static void on_attached(struct connection *c, const struct tc_reply *reply) {
  char text[TC_ESCAPE_MAX + 1];

  c->durable_seq = c->submitted_seq = reply->seq;
  c->credit_told = credit_now(c);
  tc_ingest_attached(&c->ingest, reply->stream, reply->seq, c->credit_told);
  tc_log(TC_INFO, "agents",
         "peer=%s identity=%s stream=%" PRIu32 ": attached after record %" PRIu64, c->peer,
         tc_escape(text, c->identity, strlen(c->identity)), reply->stream, reply->seq);
  send_welcome(c);
  go_on_reading(c);
}

static void end_if_acked(struct connection *c) {
  if (!c->leaving || c->ending || c->durable_seq < c->submitted_seq) return;
  send_ack(c);
  end_with(c, "sent away");
}

static void send_away(struct connection *c, const char *reason) {
  Tracecollect__V1__Goaway m = TRACECOLLECT__V1__GOAWAY__INIT;
  char text[32];

  snprintf(text, sizeof text, "%s", reason);
  m.reason = text;
  c->leaving = true;
  send_message(c, TP_GOAWAY, &m.base);
  end_if_acked(c);
}

static void about_one(struct connection *c, const struct tc_reply *reply) {
  bool permanent = reply->code != TRACECOLLECT__V1__REFUSE_CODE__REFUSE_STORAGE &&
                   reply->code != TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET;

  if (c->ending) return;
  switch (reply->kind) {
  case TC_REPLY_ATTACHED: on_attached(c, reply); break;
  case TC_REPLY_REFUSED:
    c->attached = false;
    refuse(c, (Tracecollect__V1__RefuseCode)reply->code, permanent, reply->text);
    break;
  case TC_REPLY_SUPERSEDED:
    refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_SUPERSEDED, false,
           "the stream was opened by a newer connection");
    break;
  case TC_REPLY_ACKED:
    if (reply->seq > c->durable_seq) c->durable_seq = reply->seq;
    c->ack_due = true;
    break;
  case TC_REPLY_RELEASED: c->released += reply->bytes; break;
  default: break;
  }
}

void tc_connections_reply(struct tc_connections *set, const struct tc_reply *reply) {
  uint64_t *found;

  if (reply->kind == TC_REPLY_FAILED) {
    set->store_failed = true;
    return;
  }
  found = tb_map_find(&set->by_id, reply->conn);
  if (found == NULL) return; /* it has gone meanwhile */
  struct connection *c = (struct connection *)(uintptr_t)*found;
  about_one(c, reply);
  if (c->dirty) return;
  c->dirty = true;
  c->dirty_next = set->dirty;
  set->dirty = c;
}

void tc_connections_flush(struct tc_connections *set) {
  while (set->dirty != NULL) {
    struct connection *c = set->dirty;

    set->dirty = c->dirty_next;
    c->dirty = false;
    if (c->ingest.state != TC_INGEST_STREAMING) continue;
    send_ack(c);
    end_if_acked(c);
  }
}

static void on_retry(uv_timer_t *timer) {
  struct tc_connections *set = timer->data;
  bool more = false;
  struct connection *next;

  for (struct connection *c = set->first; c != NULL; c = next) {
    next = c->next;
    if (!c->waiting) continue;
    if (c->tls != NULL)
      go_on_reading(c);
    else if (detach(c)) {
      forget(c);
      continue;
    }
    more |= c->waiting;
  }
  if (!more) uv_timer_stop(&set->retry);
}

/* --- time -------------------------------------------------------------------------------------- */

/* Spread over a fifth of it, or all that came together would leave together. */
static uint64_t age_max_ms(const struct connection *c) {
  uint64_t age_ms = to_ms(c->set->env.config->agents_age_max);

  return age_ms - age_ms / 10 + c->id * 0x9e3779b97f4a7c15u % (age_ms / 5 + 1);
}

static void tick_one(struct connection *c, uint64_t now) {
  const struct tc_config *config = c->set->env.config;
  uint64_t heartbeat_ms = to_ms(config->agents_heartbeat);

  if (c->tls == NULL || !c->open || c->ending) return;
  if (c->ingest.state == TC_INGEST_GREETING) {
    if (now - c->opened_ms >= to_ms(config->agents_handshake_timeout))
      refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_PROTOCOL, false, "no HELLO in time");
    return;
  }
  /* Whom we do not read we cannot call silent. */
  if (c->waiting || c->leaving || c->ingest.state == TC_INGEST_ATTACHING) c->heard_ms = now;
  if (now - c->heard_ms >= SILENT_HEARTBEATS * heartbeat_ms) {
    tc_metric_add(&c->set->env.metrics->peers_timed_out_total, 1);
    end_with(c, "silent for three heartbeats");
    return;
  }
  if (now - c->spoke_ms >= heartbeat_ms && tc_tls_unsent(c->tls) == 0) send_heartbeat(c);
  if (now - c->opened_ms >= age_max_ms(c) && c->ingest.state == TC_INGEST_STREAMING && !c->leaving)
    send_away(c, "age");
}

void tc_connections_tick(struct tc_connections *set) {
  uint64_t now = now_ms(set);
  struct connection *next;

  for (struct connection *c = set->first; c != NULL; c = next) {
    next = c->next;
    tick_one(c, now);
  }
}

/* --- the set ----------------------------------------------------------------------------------- */

void tc_connections_accept(struct tc_connections *set, SSL_CTX *ctx, int fd, const char *peer) {
  struct connection *c = calloc(1, sizeof *c);
  struct tc_ingest_sink ingest = { c, on_hello, on_record, on_known, on_heartbeat };
  struct tc_tls_sink tls = { c, on_open, on_bytes, on_drained, on_closed };
  uint64_t *slot;

  if (c == NULL) {
    close(fd);
    return;
  }
  c->set = set;
  c->id = (uint64_t)(set->env.loop + 1) << 48 | ++set->next_id; /* unique over all loops */
  snprintf(c->peer, sizeof c->peer, "%s", peer);
  tb_diag_clear(&c->diag);
  tc_ingest_init(&c->ingest, c->id, set->env.held_max, ingest, &c->diag);
  if (tb_map_put(&set->by_id, c->id, &slot, NULL) != TB_OK) {
    close(fd);
    free(c);
    return;
  }
  if (tc_tls_accept(set->env.tls, ctx, fd, tls, &c->tls) != TB_OK) {
    tb_map_remove(&set->by_id, c->id);
    free(c);
    return;
  }
  *slot = (uintptr_t)c;
  c->next = set->first;
  if (c->next != NULL) c->next->at = &c->next;
  c->at = &set->first;
  set->first = c;
  set->count++;
}

void tc_connections_drain(struct tc_connections *set, const char *reason) {
  struct connection *next;

  for (struct connection *c = set->first; c != NULL; c = next) {
    next = c->next;
    if (c->tls == NULL || c->ending) continue;
    if (c->ingest.state != TC_INGEST_STREAMING) {
      c->ending = true;
      tc_tls_abort(c->tls, reason);
      continue;
    }
    if (!c->leaving) send_away(c, reason);
  }
}

void tc_connections_abort(struct tc_connections *set) {
  for (struct connection *c = set->first; c != NULL; c = c->next) {
    c->ending = true;
    if (c->tls != NULL) tc_tls_abort(c->tls, "shutdown");
  }
}

size_t tc_connections_count(const struct tc_connections *set) {
  return set->count;
}

tb_rc tc_connections_new(const struct tc_connections_env *env, struct tc_connections **out) {
  struct tc_connections *set = calloc(1, sizeof *set);

  if (set == NULL) return TB_NOMEM;
  set->env = *env;
  tb_mem_init(&set->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_map_init(&set->by_id, &set->mem, 0x9e3779b97f4a7c15u); /* ids are ours: no secret is needed */
  uv_timer_init(env->tls->uv, &set->retry);
  set->retry.data = set;
  *out = set;
  return TB_OK;
}

void tc_connections_close(struct tc_connections *set) {
  uv_close((uv_handle_t *)&set->retry, NULL);
}

void tc_connections_free(struct tc_connections *set) {
  if (set == NULL) return;
  while (set->first != NULL) { /* whose DETACH found no room until the end */
    assert(set->first->tls == NULL);
    forget(set->first);
  }
  tb_map_fini(&set->by_id);
  free(set);
}
