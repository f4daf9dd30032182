/* SPDX-License-Identifier: Apache-2.0 */
/* One agent's connection: handles the events of TLS, of the session and of the store. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "collector/base/logger.h"
#include "collector/ingest/connection_private.h"
#include "tls/expiry.h"

/* --- to the store ------------------------------------------------------------------------------ */

/* Takes ownership of msg on TB_OK only. TB_AGAIN: no memory for msg, or the store's queue is full. */
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

static struct tc_counters counters_of(const Tracecollect__V1__Counters *from) {
  return (struct tc_counters){
    .produced_batches = from->produced_batches,
    .produced_bytes = from->produced_bytes,
    .spool_bytes = from->spool_bytes,
    .spool_batches = from->spool_batches,
    .lost_batches = from->lost_batches,
    .lost_bytes = from->lost_bytes,
    .lost_generations = from->lost_generations,
    .reported_seq = from->reported_seq,
    .reported_batches = from->reported_batches,
    .reported_bytes = from->reported_bytes,
    .last_loss = (uint32_t)from->last_loss,
  };
}

/* Returns TB_REFUSED after it sent a REFUSE; the connection is then CLOSING. */
static tb_rc on_hello(void *self, const Tracecollect__V1__Hello *hello) {
  struct connection *c = self;
  char reason[96];

  if (hello->major != TP_MAJOR) {
    snprintf(reason, sizeof reason, "protocol version %" PRIu32 ", this collector speaks %d",
             hello->major, TP_MAJOR);
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_VERSION, true, reason);
    return TB_REFUSED;
  }
  if (hello->stream.len != TC_STREAM_BYTES) {
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_PROTOCOL, true,
                   "stream id is not 16 bytes");
    return TB_REFUSED;
  }
  if (!name_is_valid(hello->service) || !name_is_valid(hello->instance)) {
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_NAME, true,
                   "service and instance must be 1 to 64 of A-Z a-z 0-9 . _ : -");
    return TB_REFUSED;
  }
  if (c->set->store_failed) {
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_STORAGE, false,
                   "cannot store at this time");
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
  if (rc != TB_OK) {
    tc_submit_free(msg);
    return rc;
  }
  c->attached = true;
  tc__connection_becomes(c, TC__ATTACHING);
  c->agent = (struct tc_recorder){ .conn = c->id,
                                   .loop = c->set->env.loop,
                                   .record_ns = hello->record_ns };
  memcpy(c->agent.stream, hello->stream.data, TC_STREAM_BYTES);
  strcpy(c->agent.service, hello->service);
  strcpy(c->agent.instance, hello->instance);
  if (hello->counters != NULL) c->greeted = counters_of(hello->counters);
  return TB_OK;
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
    if (msg != NULL) msg->record = NULL; /* the session keeps it */
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

/* Drops the counters if the store is busy: the next heartbeat has newer ones. */
static void submit_counters(struct connection *c, const struct tc_counters *counters) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_HEARTBEAT);

  if (msg == NULL) return;
  msg->counters = *counters;
  msg->counters.stream = c->ingest.stream;
  if (submit(c, msg) != TB_OK) tc_submit_free(msg);
}

static void on_heartbeat(void *self, const Tracecollect__V1__Heartbeat *heartbeat) {
  struct connection *c = self;

  if (heartbeat->counters == NULL || c->state != TC__STREAMING) return;
  struct tc_counters counters = counters_of(heartbeat->counters);
  submit_counters(c, &counters);
}

static void on_snapped(void *self, const Tracecollect__V1__Snapped *snapped) {
  static const enum tc_snap_state states[] = {
    [TRACECOLLECT__V1__SNAP_RESULT__SNAP_UNKNOWN] = TC_SNAP_NOTHING,
    [TRACECOLLECT__V1__SNAP_RESULT__SNAP_SHIPPED] = TC_SNAP_SHIPPED,
    [TRACECOLLECT__V1__SNAP_RESULT__SNAP_NOTHING] = TC_SNAP_NOTHING,
    [TRACECOLLECT__V1__SNAP_RESULT__SNAP_NOT_RECORDING] = TC_SNAP_NOT_RECORDING,
    [TRACECOLLECT__V1__SNAP_RESULT__SNAP_BUSY] = TC_SNAP_BUSY,
  };
  struct connection *c = self;
  unsigned result = (unsigned)snapped->result;
  struct tc_snap_done done = {
    .state = result < sizeof states / sizeof states[0] ? states[result] : TC_SNAP_NOTHING,
    .first_gen = snapped->first_gen,
    .last_gen = snapped->last_gen,
    .generations = snapped->generations,
    .batches = snapped->batches,
    .bytes = snapped->bytes,
    .lost_generations = snapped->lost_generations,
    .from_wall_ns = snapped->from_wall_ns,
    .to_wall_ns = snapped->to_wall_ns,
  };

  if (c->set->env.recorders != NULL)
    tc_recorders_answer(c->set->env.recorders, c->id, snapped->id, &done);
}

bool tc__detach(struct connection *c) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_DETACH);

  if (submit(c, msg) == TB_OK) return true;
  tc_submit_free(msg);
  return false;
}

/* --- from TLS ---------------------------------------------------------------------------------- */

static tb_rc take_bytes(struct connection *c, const unsigned char *bytes, size_t n, size_t *used) {
  tb_rc rc;

  if (c->state >= TC__DRAINING) {
    *used = n;
    return TB_AGAIN;
  }
  rc = tc_ingest_bytes(&c->ingest, bytes, n, used);
  switch (rc) {
  case TB_OK: return TB_OK;
  case TB_AGAIN:
    if (c->state != TC__ATTACHING) tc__wait_for_store(c);
    return TB_AGAIN;
  case TB_REFUSED: break; /* on_hello() sent a REFUSE */
  case TB_BUDGET:
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET, false, c->diag.text);
    break;
  case TB_NOMEM:
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET, false,
                   "collector is out of memory");
    break;
  default:
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_PROTOCOL, true, c->diag.text);
    break;
  }
  return rc;
}

static size_t on_room(void *self, unsigned char **out) {
  struct connection *c = self;

  return c->state >= TC__DRAINING ? 0 : tc_ingest_room(&c->ingest, out);
}

static tb_rc on_bytes(void *self, const unsigned char *bytes, size_t n, size_t *used) {
  struct connection *c = self;
  tb_rc rc;

  c->heard_ms = tc__now_ms(c->set);
  rc = take_bytes(c, bytes, n, used);
  if (c->ack_due) tc__say_ack(c);
  return rc;
}

static void take_limits(struct connection *c) {
  const struct tc_config *config = c->set->env.config;

  c->ingest.held_max = config->agents_records_max;
  c->ingest.tenant_held_max = config->agents_identity_records_max;
  c->ingest.stream_rate = config->agents_stream_generations_rate;
  c->ingest.tenant_rate = config->agents_identity_generations_rate;
  c->ingest.jobs_max = config->agents_generations_max;
}

static void leave_limiter(struct connection *c, bool failed) {
  if (c->set->env.limiter != NULL)
    tc_handshake_limiter_leave(c->set->env.limiter, c->source, failed, uv_hrtime());
}

static void enter_quota(struct connection *c) {
  const struct tc_config *config = c->set->env.config;
  uint64_t most = config->agents_identity_connections_max;
  tb_rc rc = tc_quotas_enter(c->set->env.quotas, c->identity, most, &c->quota);
  char reason[96];

  if (rc == TB_OK) {
    c->ingest.quota = c->quota;
    take_limits(c);
    return;
  }
  snprintf(reason, sizeof reason,
           rc == TB_BUDGET ? "agents.identity_connections_max is %" PRIu64
                             " for one certificate name"
                           : "out of memory",
           most);
  tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET, false, reason);
}

static void warn_of_expiry(const struct connection *c) {
  char text[TC_ESCAPE_MAX + 1];
  int days;

  if (!tc_expiry_is_near(c->expires_s, tc_wall_ns(), &days)) return;
  tc_log(TC_WARN, "agents", "peer=%s identity=\"%s\": its certificate expires in %d days", c->peer,
         tc_escape(text, c->identity, strlen(c->identity)), days);
}

static void on_open(void *self) {
  struct connection *c = self;
  struct tc_metrics *metrics = c->set->env.metrics;
  enum tc_role role;

  tc__connection_becomes(c, TC__GREETING);
  c->open = true;
  leave_limiter(c, false);
  c->opened_ms = c->heard_ms = c->spoke_ms = c->hold_window_ms = c->moved_ms = tc__now_ms(c->set);
  tc_metric_add(&metrics->connections_opened_total, 1);
  tc_metric_add(&metrics->connections, 1);
  c->expires_s = tc_tls_peer_expires_s(tc_tls_ssl(c->tls));
  tb_rc rc = tc_tls_identity(tc_tls_ssl(c->tls), &c->diag, &role, c->identity);
  if (rc == TB_OK) rc = tc_role_check(role, TC_ACT_SEND, c->identity, &c->diag);
  if (rc == TB_OK)
    enter_quota(c);
  else if (rc == TB_NOMEM) /* not permanent: the certificate is valid */
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET, false, c->diag.text);
  else
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_IDENTITY, true, c->diag.text);
  if (!tc__is_over(c)) warn_of_expiry(c);
}

static void on_drained(void *self) {
  tc__say_ack(self);
}

static void on_closed(void *self, const char *why) {
  struct connection *c = self;
  struct tc_metrics *metrics = c->set->env.metrics;
  char text[TC_ESCAPE_MAX + 1];

  if (!c->open) leave_limiter(c, !tc__is_over(c)); /* if we ended the handshake it has not failed */
  c->tls = NULL;
  tc__connection_becomes(c, TC__GONE);
  tc_ingest_fini(&c->ingest);
  if (c->joined) tc_recorders_leave(c->set->env.recorders, c->id);
  if (c->quota != NULL) tc_quotas_leave(c->set->env.quotas, c->quota);
  tb_map_remove(&c->set->by_id, c->id);
  if (!c->open) {
    tc_metric_add(&metrics->handshakes_failed_total, 1);
    tc_log(TC_WARN, "agents", "peer=%s: TLS handshake failed: %s", c->peer,
           tc_escape(text, why, strlen(why)));
  } else {
    tc_metric_sub(&metrics->connections, 1);
    tc_log_about(tc_log_subject_of(c->identity), TC_INFO, "agents",
                 "peer=%s identity=%s: closed%s%s", c->peer, c->identity,
                 why[0] != '\0' ? ": " : "", tc_escape(text, why, strlen(why)));
  }
  if (!c->attached || tc__detach(c))
    tc__forget(c);
  else
    tc__wait_for_store(c);
}

tb_rc tc__connection_open(struct connection *c, SSL_CTX *ctx, int fd) {
  struct tc_ingest_sink ingest = { c, on_hello, on_record, on_known, on_heartbeat, on_snapped };
  struct tc_tls_sink tls = { .self = c,
                             .open = on_open,
                             .room = on_room,
                             .bytes = on_bytes,
                             .drained = on_drained,
                             .closed = on_closed };

  tb_diag_clear(&c->diag);
  c->wait = TC__WAIT_NONE;
  c->heartbeat_ms = tc__to_ms(c->set->env.config->agents_heartbeat);
  c->credit = c->set->env.config->agents_credit;
  tc_ingest_init(&c->ingest, c->id, c->set->env.config->agents_records_max, ingest, &c->diag);
  return tc_tls_accept(c->set->env.tls, ctx, fd, tls, &c->tls);
}

/* --- replies ----------------------------------------------------------------------------------- */

void tc__go_on_reading(struct connection *c) {
  bool closing = c->state >= TC__DRAINING;
  size_t used;
  tb_rc rc = closing ? TB_END : take_bytes(c, NULL, 0, &used);

  if (rc != TB_AGAIN || c->state == TC__ATTACHING) tc__waits_no_more(c);
  if (closing) return;
  if (rc == TB_OK) tc_tls_resume(c->tls);
  if (c->ack_due) tc__say_ack(c);
}

static void on_attached(struct connection *c, const struct tc_reply *reply) {
  char text[TC_ESCAPE_MAX + 1], serial[TC_SERIAL_MAX + 1];

  tc_tls_peer_serial(tc_tls_ssl(c->tls), serial);
  c->durable_seq = c->submitted_seq = reply->seq;
  if (c->set->env.recorders != NULL) {
    c->joined = tc_recorders_join(c->set->env.recorders, &c->agent) == TB_OK;
    if (!c->joined)
      tc_log(TC_ERROR, "agents", "peer=%s: out of memory: snaps cannot be requested from it",
             c->peer);
  }
  tc_log_about(tc_log_subject_of(c->identity), TC_INFO, "agents",
               "peer=%s identity=%s serial=%s stream=%" PRIu32 ": attached after record %" PRIu64,
               c->peer, tc_escape(text, c->identity, strlen(c->identity)), serial, reply->stream,
               reply->seq);
  tc__say_welcome(c);
  tc__connection_becomes(c, TC__STREAMING);
  tc_ingest_attached(&c->ingest, reply->stream, reply->seq, c->credit_reported);
  if (c->greeted.produced_batches > 0) submit_counters(c, &c->greeted);
  tc__go_on_reading(c);
}

void tc__end_if_acked(struct connection *c) {
  if (c->state != TC__DRAINING || c->durable_seq < c->submitted_seq) return;
  tc__say_ack(c);
  tc__end(c, "sent away");
}

/* Refuses without `permanent`: the agent may get another certificate, and then sends its unacked records again. */
void tc__end_if_revoked(struct connection *c) {
  if (tc__is_over(c) || !tc_tls_is_revoked(tc_tls_ssl(c->tls))) return;
  tc_metric_add(&c->set->env.metrics->revoked_ended_total, 1);
  if (c->state == TC__HANDSHAKING)
    tc__abort(c, "certificate revoked");
  else
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_IDENTITY, false, "certificate revoked");
}

void tc__abort(struct connection *c, const char *why) {
  if (c->state == TC__GONE) return;
  if (c->state != TC__CLOSING) tc__connection_becomes(c, TC__CLOSING);
  tc_tls_abort(c->tls, why);
}

void tc__send_away(struct connection *c, const char *reason) {
  tc__connection_becomes(c, TC__DRAINING);
  tc__say_goaway(c, reason);
  tc__end_if_acked(c);
}

static void on_refused(struct connection *c, const struct tc_reply *reply) {
  bool permanent = reply->code != TRACECOLLECT__V1__REFUSE_CODE__REFUSE_STORAGE &&
                   reply->code != TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET;

  c->attached = false;
  tc__say_refuse(c, (Tracecollect__V1__RefuseCode)reply->code, permanent, reply->text);
}

void tc__about_one(struct connection *c, const struct tc_reply *reply) {
  if (tc__is_over(c)) return;
  switch (reply->kind) {
  case TC_REPLY_ATTACHED: on_attached(c, reply); break;
  case TC_REPLY_REFUSED: on_refused(c, reply); break;
  case TC_REPLY_SUPERSEDED:
    tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_SUPERSEDED, false,
                   "the stream was opened by a newer connection");
    break;
  case TC_REPLY_ACKED:
    if (reply->seq > c->durable_seq) c->durable_seq = reply->seq;
    c->ack_due = true;
    break;
  case TC_REPLY_RELEASED: c->released += reply->released; break;
  default: break;
  }
}

/* --- time -------------------------------------------------------------------------------------- */

/* A peer that sends a byte now and then is not silent, but occupies a connection and a record's memory. Time during which
 * we do not read does not count. */
static bool frame_is_too_slow(struct connection *c, uint64_t now) {
  const struct tc_config *config = c->set->env.config;
  size_t begun = tc_ingest_begun(&c->ingest);
  uint64_t took_ms = now - c->frame_ms;
  char reason[96];

  if (begun == 0 || tc__waits(c) || c->frame_seen != c->ingest.frames || c->frame_ms == 0) {
    c->frame_seen = c->ingest.frames;
    c->frame_ms = now;
    return false;
  }
  if (took_ms < tc__to_ms(config->agents_frame_time)) return false;
  if (begun >= config->agents_frame_rate_min * took_ms / 1000) return false;
  snprintf(reason, sizeof reason, "%zu bytes of a frame in %" PRIu64 " s: too slow", begun,
           took_ms / 1000);
  tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_PROTOCOL, false, reason);
  return true;
}

void tc__tick_one(struct connection *c, uint64_t now, bool stood_still) {
  const struct tc_config *config = c->set->env.config;

  if (c->state == TC__HANDSHAKING || tc__is_over(c)) return;
  if (c->state == TC__GREETING) {
    if (!stood_still && now - c->opened_ms >= tc__to_ms(config->agents_handshake_timeout))
      tc__say_refuse(c, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_PROTOCOL, false, "no HELLO in time");
    return;
  }
  if (stood_still) c->frame_ms = 0; /* bytes that arrived meanwhile are read after this tick */
  /* A peer that we do not read is not silent. */
  if (stood_still || tc__waits(c) || c->state == TC__DRAINING || c->state == TC__ATTACHING)
    c->heard_ms = now;
  if (now - c->heard_ms >= tp_silence(c->heartbeat_ms)) {
    tc_metric_add(&c->set->env.metrics->peers_timed_out_total, 1);
    tc__end(c, "silent for almost three heartbeats");
    return;
  }
  take_limits(c);
  tc__hold_tick(c, now);
  if (frame_is_too_slow(c, now)) return;
  if (now - c->spoke_ms >= c->heartbeat_ms && tc_tls_unsent(c->tls) == 0) tc__say_heartbeat(c);
  if (now - c->opened_ms >= tc__spread_age(tc__to_ms(config->agents_age_max), c->id) &&
      c->state == TC__STREAMING)
    tc__send_away(c, "age");
}
