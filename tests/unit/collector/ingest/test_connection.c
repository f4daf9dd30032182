/* SPDX-License-Identifier: Apache-2.0 */
/* Real TLS clients against a real loop. Only the store behind the loop is a stand-in. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/ingest/connection.h"
#include "collector/ingest/connection_private.h"
#include "collector/ingest/record_pool.h"
#include "collector/ingest/session.h"
#include "collector/net/event_loop.h"
#include "collector/net/tcp_listener.h"
#include "proto/frame.pb-c.h"
#include "support/caller.h"
#include "support/certs.h"
#include "support/patience.h"
#include "support/peer.h"
#include "support/tls_host.h"
#include "unit/collector/store/memory_store.h"

struct server {
  struct tt_tls_host host;
  struct tc_config config;
  struct tc_metrics metrics;
  struct memory_store store;
  struct tc_connections *connections;
  struct tc_quotas *quotas;
  struct tc_listener *listener;
  SSL_CTX *ctx;
  atomic_size_t count;
  atomic_uint shortage; /* that the store's log reports */
  char address[TC_ADDRESS_MAX];
};

static void answer_all(struct server *s) {
  struct tc_reply *reply;

  while ((reply = memory_store_answer(&s->store)) != NULL) {
    tc_connections_reply(s->connections, reply);
    tc_reply_free(reply);
  }
  tc_connections_flush(s->connections);
  atomic_store(&s->count, tc_connections_count(s->connections));
}

/* Replies arrive in a turn of their own, as from another thread. */
static bool submit(void *self, struct tc_submit *msg) {
  struct server *s = self;

  if (!memory_store_submit(&s->store, msg)) return false;
  uv_async_send(&s->host.loop.wake);
  return true;
}

static enum tc_shortage shortage(const void *self, bool of_log) {
  const struct server *s = self;

  return of_log ? (enum tc_shortage)atomic_load(&s->shortage) : TC_SHORT_NONE;
}

enum { DRAIN = 1, FAIL, AGE, STAND_STILL };
enum { HEARTBEAT_MS = 500, STILL_MS = 3 * HEARTBEAT_MS }; /* longer than a peer may be silent */

static void on_message(void *self, enum tc_loop_sender from, void *msg) {
  struct server *s = self;
  struct tc_reply failed = { .kind = TC_REPLY_FAILED };

  (void)from;
  if ((uintptr_t)msg == DRAIN) tc_connections_drain(s->connections, "shutdown");
  if ((uintptr_t)msg == FAIL) tc_connections_reply(s->connections, &failed);
  if ((uintptr_t)msg == AGE) s->config.agents_age_max = 0; /* all present connections are too old */
  if ((uintptr_t)msg == STAND_STILL) usleep(1000 * STILL_MS);
}

static void on_drained(void *self) {
  answer_all(self);
}

static void on_tick(void *self) {
  struct server *s = self;

  tc_tls_loop_tick(&s->host.tls);
  tc_connections_tick(s->connections);
  answer_all(s);
}

static void on_stop(void *self) {
  struct server *s = self;

  tc_listener_close(s->listener);
  tc_connections_abort(s->connections);
  tc_connections_close(s->connections);
  tc_tls_loop_close(&s->host.tls);
}

static bool ready(void *self) {
  (void)self;
  return true;
}

static void accepted(void *self, int fd, const char *peer) {
  struct server *s = self;

  tc_connections_accept(s->connections, s->ctx, fd, peer, 0);
}

static struct server *server_start(void (*adjust)(struct tc_config *config)) {
  struct server *s = calloc(1, sizeof *s);
  struct tc_loop_handler handler = { s, on_message, on_drained, on_tick, on_stop };
  struct tc_tls_terms terms = { .alpn = TP_ALPN };
  struct tc_listener_sink sink = { .self = s, .ready = ready, .accepted = accepted };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tt_tls_host_open(&s->host, handler);
  tc_config_init(&s->config);
  if (adjust != NULL) adjust(&s->config);
  cr_assert_eq(tc_tls_context_new(s->host.dir, &terms, &diag, &s->ctx), TB_OK, "%s", diag.text);
  /* agents_handshake_timeout limits what follows the handshake */
  s->host.tls.handshake_ms = TT_PATIENCE_MS;
  struct tc_submit_sink store = { s, submit };
  atomic_init(&s->shortage, TC_SHORT_NONE);
  cr_assert_eq(tc_quotas_new(&s->quotas), TB_OK);
  struct tc_connections_env env = { .tls = &s->host.tls,
                                    .config = &s->config,
                                    .metrics = &s->metrics,
                                    .store = store,
                                    .shortage = shortage,
                                    .shortage_self = s,
                                    .quotas = s->quotas };
  cr_assert_eq(tc_connections_new(&env, &s->connections), TB_OK);
  cr_assert_eq(tc_listener_open(&s->host.loop.uv, "127.0.0.1:0", sink, &diag, &s->listener), TB_OK,
               "%s", diag.text);
  strcpy(s->address, tc_listener_address(s->listener));
  tt_tls_host_start(&s->host);
  return s;
}

static void server_stop(struct server *s) {
  tt_tls_host_end(&s->host);
  tc_connections_free(s->connections);
  for (struct tc_reply *r; (r = memory_store_answer(&s->store)) != NULL;) tc_reply_free(r);
  SSL_CTX_free(s->ctx);
  tc_config_fini(&s->config);
  cr_assert_eq(tc_records_held_bytes(), 0, "no record's memory is left");
  tc_quotas_free(s->quotas);
  free(s);
}

static struct tt_peer_terms agent_of(const struct server *s) {
  return (struct tt_peer_terms){
    .address = s->address, .ca_dir = s->host.dir, .name = "agent", .alpn = TP_ALPN
  };
}

/* A well-behaved agent that is attached. */
static void join(struct server *s, struct tt_peer *peer, unsigned char id) {
  unsigned char stream[16] = { id };
  struct tt_peer_terms terms = agent_of(s);
  struct tp_frame frame;

  cr_assert(tt_peer_open(peer, &terms), "line %d: %s", tt_caller, peer->why);
  cr_assert(tt_peer_hello(peer, stream, "shop"), "line %d: %s", tt_caller, peer->why);
  cr_assert(tt_peer_read_frame(peer, &frame), "line %d: %s", tt_caller, peer->why);
  cr_assert_eq(frame.kind, TP_WELCOME, TT_CALLER);
}
#define join(...) TT_CALL(join(__VA_ARGS__))

static uint64_t acked(struct tt_peer *peer, uint64_t until) {
  struct tp_frame frame;
  uint64_t seq = 0;

  while (seq < until) {
    cr_assert(tt_peer_wait_for(peer, TP_ACK, &frame), "%s", peer->why);
    Tracecollect__V1__Ack *ack = tracecollect__v1__ack__unpack(NULL, frame.len, frame.payload);
    cr_assert_not_null(ack);
    seq = ack->durable_seq;
    tracecollect__v1__ack__free_unpacked(ack, NULL);
  }
  return seq;
}

/* Waits for an ack with this reason. Acks without a reason may come first. */
static void expect_hold(struct tt_peer *peer, Tracecollect__V1__Hold want) {
  Tracecollect__V1__Hold hold = TRACECOLLECT__V1__HOLD__HOLD_NONE;
  struct tp_frame frame;

  while (hold != want) {
    cr_assert(tt_peer_wait_for(peer, TP_ACK, &frame), "%s", peer->why);
    Tracecollect__V1__Ack *ack = tracecollect__v1__ack__unpack(NULL, frame.len, frame.payload);
    cr_assert_not_null(ack);
    cr_assert_eq(ack->durable_seq, 0);
    hold = ack->hold;
    tracecollect__v1__ack__free_unpacked(ack, NULL);
  }
}

static void expect_refusal(struct tt_peer *peer, const char *reason) {
  struct tp_frame frame;

  cr_assert(tt_peer_wait_for(peer, TP_REFUSE, &frame), "%s", peer->why);
  Tracecollect__V1__Refuse *refuse =
      tracecollect__v1__refuse__unpack(NULL, frame.len, frame.payload);
  cr_assert_not_null(refuse);
  cr_assert_not_null(strstr(refuse->reason, reason), "\"%s\" is not in \"%s\"", reason,
                     refuse->reason);
  tracecollect__v1__refuse__free_unpacked(refuse, NULL);
  cr_assert_not(tt_peer_read_frame(peer, &frame));
  cr_assert_str_eq(peer->why, "closed in order");
}

Test(connection, records_are_acked_in_order_and_a_resumed_stream_goes_on) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;
  unsigned char stream[16] = { 1 };
  static char batch[60000];

  join(s, &peer, 1);
  for (uint64_t seq = 1; seq <= 100; seq++)
    cr_assert(tt_peer_send_frame(&peer, TP_BATCH, seq, 1, batch, sizeof batch), "%s", peer.why);
  cr_assert_eq(acked(&peer, 100), 100);
  tt_peer_close(&peer);
  TT_WAIT_UNTIL(s->store.detaches == 1 && s->count == 0);

  struct tt_peer_terms terms = agent_of(s);
  struct tp_frame frame;
  cr_assert(tt_peer_open(&peer, &terms), "%s", peer.why);
  cr_assert(tt_peer_hello(&peer, stream, "shop"));
  cr_assert(tt_peer_wait_for(&peer, TP_WELCOME, &frame));
  Tracecollect__V1__Welcome *welcome =
      tracecollect__v1__welcome__unpack(NULL, frame.len, frame.payload);
  cr_assert_eq(welcome->durable_seq, 100);
  cr_assert_eq(welcome->credit_bytes, s->config.agents_credit);
  cr_assert_str_eq(welcome->level, "durable");
  tracecollect__v1__welcome__free_unpacked(welcome, NULL);
  cr_assert(tt_peer_send_frame(&peer, TP_BATCH, 99, 1, "x", 1)); /* a known record: acked again */
  cr_assert_eq(acked(&peer, 100), 100);
  cr_assert(tt_peer_send_frame(&peer, TP_BATCH, 101, 1, "x", 1));
  cr_assert_eq(acked(&peer, 101), 101);
  cr_assert_eq(s->store.records, 101);
  tt_peer_close(&peer);
  server_stop(s);
}

/* Runs a misbehaving agent while another agent streams, which must not notice. */
static void beside_a_good_one(void (*misbehave)(struct server *s)) {
  struct server *s = server_start(NULL);
  struct tt_peer good;
  static char batch[30000];

  join(s, &good, 200);
  for (uint64_t seq = 1; seq <= 20; seq++)
    cr_assert(tt_peer_send_frame(&good, TP_BATCH, seq, 1, batch, sizeof batch));
  misbehave(s);
  for (uint64_t seq = 21; seq <= 40; seq++)
    cr_assert(tt_peer_send_frame(&good, TP_BATCH, seq, 1, batch, sizeof batch));
  cr_assert_eq(acked(&good, 40), 40);
  tt_peer_close(&good);
  server_stop(s);
}

static void expect_no_tls(const struct tt_peer_terms *terms, const char *reason) {
  struct tt_peer peer;
  struct tp_frame frame;

  /* A TLS 1.3 client completes its handshake first and gets the refusal at its first read. */
  if (tt_peer_open(&peer, terms)) cr_assert_not(tt_peer_read_frame(&peer, &frame));
  cr_assert_not_null(strstr(peer.why, reason), "\"%s\" is not in \"%s\"", reason, peer.why);
  tt_peer_close(&peer);
}

static void no_certificate(struct server *s) {
  struct tt_peer_terms terms = agent_of(s);

  terms.name = NULL;
  expect_no_tls(&terms, "certificate required");
}

static void another_authority(struct server *s) {
  struct tt_peer_terms terms = agent_of(s);
  char dir[] = "/tmp/tt_other_XXXXXX", command[64];

  cr_assert_not_null(mkdtemp(dir));
  tt_certs_make(dir);
  terms.certs_dir = dir;
  expect_no_tls(&terms, "decrypt error"); /* the issuer has our authority's name but not its key */
  snprintf(command, sizeof command, "rm -r %s", dir);
  cr_assert_eq(system(command), 0);
}

static void wrong_alpn(struct server *s) {
  struct tt_peer_terms terms = agent_of(s);

  terms.alpn = "h2";
  expect_no_tls(&terms, "no application protocol");
  terms.alpn = NULL;
  expect_no_tls(&terms, "no application protocol");
}

static void a_readers_certificate(struct server *s) {
  struct tt_peer_terms terms = agent_of(s);
  struct tt_peer peer;

  terms.name = "reader";
  cr_assert(tt_peer_open(&peer, &terms), "%s", peer.why);
  expect_refusal(&peer, "certificate is for tracecollect:reader/test");
  tt_peer_close(&peer);
}

static void two_names(struct server *s) {
  struct tt_peer_terms terms = agent_of(s);
  struct tt_peer peer;

  tt_certs_issue(s->host.dir, "two", "URI:tracecollect:agent/a,URI:tracecollect:agent/b", 1000);
  terms.name = "two";
  cr_assert(tt_peer_open(&peer, &terms), "%s", peer.why);
  expect_refusal(&peer, "certificate has 2 SAN URIs");
  tt_peer_close(&peer);
}

static void expired(struct server *s) {
  struct tt_peer_terms terms = agent_of(s);

  tt_certs_issue(s->host.dir, "old", "URI:tracecollect:agent/a", -1000);
  terms.name = "old";
  expect_no_tls(&terms, "certificate expired");
}

static void junk_instead_of_tls(struct server *s) {
  struct tt_peer_terms terms = agent_of(s);
  struct tt_peer peer;
  char command[300];

  /* Unencrypted bytes on the TLS port. */
  const char *port = strrchr(s->address, ':') + 1;
  snprintf(command, sizeof command,
           "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%s && echo GET / HTTP/1.0 >&3 && cat <&3' "
           ">/dev/null 2>&1",
           port);
  (void)!system(command);
  cr_assert(tt_peer_open(&peer, &terms), "%s", peer.why);
  tt_peer_close(&peer);
}

Test(connection, no_certificate_is_refused) {
  beside_a_good_one(no_certificate);
}
Test(connection, a_certificate_of_another_authority_is_refused) {
  beside_a_good_one(another_authority);
}
Test(connection, an_expired_certificate_is_refused) {
  beside_a_good_one(expired);
}
Test(connection, another_protocol_is_refused) {
  beside_a_good_one(wrong_alpn);
}
Test(connection, a_readers_certificate_is_refused) {
  beside_a_good_one(a_readers_certificate);
}
Test(connection, a_certificate_with_two_names_is_refused) {
  beside_a_good_one(two_names);
}
Test(connection, bytes_that_are_not_tls_end_alone) {
  beside_a_good_one(junk_instead_of_tls);
}

static void oversized(struct server *s) {
  struct tt_peer peer;
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame = {
    .kind = TP_BATCH, .flags = TP_CRITICAL, .seq = 1, .gen = 1, .len = 2 << 20
  };

  join(s, &peer, 1);
  tp_frame_head_summed(&frame, head);
  cr_assert(tt_peer_send(&peer, head, sizeof head));
  expect_refusal(&peer, "BATCH frame of 2097152 bytes, limit 73728");
  tt_peer_close(&peer);
}

static void bad_checksum(struct server *s) {
  struct tt_peer peer;
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame = {
    .kind = TP_BATCH, .flags = TP_CRITICAL, .seq = 1, .gen = 1, .payload_crc = 12345, .len = 3
  };

  join(s, &peer, 1);
  tp_frame_head_summed(&frame, head);
  cr_assert(tt_peer_send(&peer, head, sizeof head));
  cr_assert(tt_peer_send(&peer, "abc", 3));
  expect_refusal(&peer, "BATCH frame fails its checksum");
  tt_peer_close(&peer);
}

static void out_of_sequence(struct server *s) {
  struct tt_peer peer;

  join(s, &peer, 1);
  cr_assert(tt_peer_send_frame(&peer, TP_BATCH, 1, 1, "a", 1));
  cr_assert(tt_peer_send_frame(&peer, TP_BATCH, 3, 1, "c", 1));
  expect_refusal(&peer, "record 3 arrived, 2 was expected");
  tt_peer_close(&peer);
}

static void bad_name(struct server *s) {
  struct tt_peer_terms terms = agent_of(s);
  struct tt_peer peer;
  unsigned char stream[16] = { 1 };

  cr_assert(tt_peer_open(&peer, &terms));
  cr_assert(tt_peer_hello(&peer, stream, "../../etc"));
  expect_refusal(&peer, "service and instance must be");
  tt_peer_close(&peer);
}

static void refused_by_the_store(struct server *s) {
  struct tt_peer_terms terms = agent_of(s);
  struct tt_peer peer;
  unsigned char stream[16] = { 1 };

  cr_assert(tt_peer_open(&peer, &terms));
  cr_assert(tt_peer_hello(&peer, stream, "forbidden"));
  expect_refusal(&peer, "the stream belongs to another");
  tt_peer_close(&peer);
}

static void superseded(struct server *s) {
  struct tt_peer old, fresh;

  join(s, &old, 1);
  join(s, &fresh, 1);
  expect_refusal(&old, "opened by a newer connection");
  cr_assert(tt_peer_send_frame(&fresh, TP_BATCH, 1, 1, "a", 1));
  cr_assert_eq(acked(&fresh, 1), 1);
  tt_peer_close(&old);
  tt_peer_close(&fresh);
}

Test(connection, an_oversized_frame_is_refused) {
  beside_a_good_one(oversized);
}
Test(connection, a_wrong_checksum_is_refused) {
  beside_a_good_one(bad_checksum);
}
Test(connection, a_record_out_of_sequence_is_refused) {
  beside_a_good_one(out_of_sequence);
}
Test(connection, a_name_that_is_none_is_refused) {
  beside_a_good_one(bad_name);
}
Test(connection, what_the_store_refuses_the_agent_hears) {
  beside_a_good_one(refused_by_the_store);
}
Test(connection, a_newer_connection_takes_the_stream_over) {
  beside_a_good_one(superseded);
}

Test(connection, what_an_agent_had_produced_before_it_came_is_passed_on) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;

  join(s, &peer, 1);
  TT_WAIT_UNTIL(atomic_load(&s->store.heartbeats) == 1);
  tt_peer_close(&peer);
  server_stop(s);
}

Test(connection, a_heartbeat_without_counters_is_a_sign_of_life_and_no_more) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;

  join(s, &peer, 1);
  TT_WAIT_UNTIL(atomic_load(&s->store.heartbeats) == 1);
  cr_assert(tt_peer_send_frame(&peer, TP_HEARTBEAT, 0, 0, "", 0), "%s", peer.why);
  cr_assert(tt_peer_send_frame(&peer, TP_BATCH, 1, 1, "batch", 5), "%s", peer.why);
  cr_assert_eq(acked(&peer, 1), 1);
  cr_assert_eq(atomic_load(&s->store.heartbeats), 1);
  tt_peer_close(&peer);
  server_stop(s);
}

static void hurry(struct tc_config *config) {
  config->agents_heartbeat = HEARTBEAT_MS * UINT64_C(1000000);
}

Test(connection, a_silent_agent_gets_heartbeats_and_is_then_let_go) {
  struct server *s = server_start(hurry);
  struct tt_peer peer;
  struct tp_frame frame;

  join(s, &peer, 1);
  cr_assert(tt_peer_wait_for(&peer, TP_HEARTBEAT, &frame), "%s", peer.why);
  while (tt_peer_read_frame(&peer, &frame)) cr_assert_eq(frame.kind, TP_HEARTBEAT);
  cr_assert_eq(s->metrics.peers_timed_out_total, 1);
  tt_peer_close(&peer);
  server_stop(s);
}

/* A server that stood still has read nothing meanwhile. If it called its agents silent, all would have to reconnect at once. */
Test(connection, a_server_that_stood_still_calls_nobody_silent) {
  struct server *s = server_start(hurry);
  struct tt_peer peer;
  struct tp_frame frame;

  join(s, &peer, 1);
  cr_assert(tc_loop_post(&s->host.loop, TC_SENDER_MAIN, (void *)(uintptr_t)STAND_STILL));
  cr_assert(tt_peer_wait_for(&peer, TP_HEARTBEAT, &frame), "%s", peer.why);
  tt_peer_close(&peer);
  server_stop(s);
}

static void wants_a_greeting_soon(struct tc_config *config) {
  config->agents_handshake_timeout = 200000000;
}

Test(connection, who_does_not_greet_in_time_is_told_so) {
  struct server *s = server_start(wants_a_greeting_soon);
  struct tt_peer_terms terms = agent_of(s);
  struct tt_peer peer;

  cr_assert(tt_peer_open(&peer, &terms));
  expect_refusal(&peer, "no HELLO in time");
  tt_peer_close(&peer);
  server_stop(s);
}

Test(connection, a_full_store_stops_reading_and_loses_nothing) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;
  static char batch[30000];

  join(s, &peer, 1);
  s->store.full = true;
  for (uint64_t seq = 1; seq <= 60; seq++)
    cr_assert(tt_peer_send_frame(&peer, TP_BATCH, seq, 1, batch, sizeof batch), "%s", peer.why);
  TT_WAIT_UNTIL(s->metrics.holds_total > 0);
  cr_assert_eq(s->store.records, 0);
  s->store.full = false;
  cr_assert_eq(acked(&peer, 60), 60);
  cr_assert_eq(s->store.records, 60);
  tt_peer_close(&peer);
  TT_WAIT_UNTIL(s->count == 0);
  server_stop(s);
}

static void on_ticks(struct server *s, unsigned ticks) {
  uint64_t upto = atomic_load(&s->host.loop.beats) + ticks;

  TT_WAIT_UNTIL(atomic_load(&s->host.loop.beats) >= upto);
}

/* Once, each millisecond of waiting was counted: half a million holds a second with 1,500 connections. */
Test(connection, a_hold_is_counted_once_however_long_it_lasts) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;
  static char batch[30000];

  join(s, &peer, 1);
  s->store.full = true;
  for (uint64_t seq = 1; seq <= 3; seq++)
    cr_assert(tt_peer_send_frame(&peer, TP_BATCH, seq, 1, batch, sizeof batch), "%s", peer.why);
  TT_WAIT_UNTIL(s->metrics.holds_total > 0);
  on_ticks(s, 20);
  cr_assert_eq(s->metrics.holds_total, 1);
  s->store.full = false;
  cr_assert_eq(acked(&peer, 3), 3);
  tt_peer_close(&peer);
  TT_WAIT_UNTIL(s->count == 0);
  server_stop(s);
}

Test(connection, an_agent_learns_why_nothing_is_acked) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;

  s->store.silent = true;
  join(s, &peer, 1);
  cr_assert(tt_peer_send_frame(&peer, TP_BATCH, 1, 1, "batch", 5), "%s", peer.why);
  atomic_store(&s->shortage, TC_SHORT_SPACE);
  expect_hold(&peer, TRACECOLLECT__V1__HOLD__HOLD_DISK_FULL);
  atomic_store(&s->shortage, TC_SHORT_FREE_MIN);
  expect_hold(&peer, TRACECOLLECT__V1__HOLD__HOLD_DISK_FULL);
  atomic_store(&s->shortage, TC_SHORT_IO);
  expect_hold(&peer, TRACECOLLECT__V1__HOLD__HOLD_STORE);
  tt_peer_close(&peer);
  TT_WAIT_UNTIL(s->count == 0);
  server_stop(s);
}

/* As when a call to the disk does not return: the store does not know of any fault. */
Test(connection, a_store_that_is_silent_for_long_is_a_reason) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;

  s->store.silent = true;
  join(s, &peer, 1);
  cr_assert(tt_peer_send_frame(&peer, TP_BATCH, 1, 1, "batch", 5), "%s", peer.why);
  expect_hold(&peer, TRACECOLLECT__V1__HOLD__HOLD_STORE);
  tt_peer_close(&peer);
  TT_WAIT_UNTIL(s->count == 0);
  server_stop(s);
}

static void room_for_one_record(struct tc_config *config) {
  config->agents_records_max = 40000;
}

/* The records that hold the memory belong to another loop, which does not tell this one when it frees them. */
Test(connection, memory_that_is_freed_elsewhere_wakes_who_waits_for_it) {
  struct server *s = server_start(room_for_one_record);
  struct tt_peer peers[3];
  static char batch[30000];
  struct tc_record *other = tc_record_new(30000, NULL);

  for (unsigned i = 0; i < 3; i++) {
    join(s, &peers[i], (unsigned char)(i + 1));
    cr_assert(tt_peer_send_frame(&peers[i], TP_BATCH, 1, 1, batch, sizeof batch));
  }
  TT_WAIT_UNTIL(s->metrics.holds_total == 3);
  on_ticks(s, 5);
  cr_assert_eq(s->store.records, 0);
  tc_record_free(other);
  for (unsigned i = 0; i < 3; i++) cr_assert_eq(acked(&peers[i], 1), 1);
  cr_assert_eq(s->store.records, 3);
  for (unsigned i = 0; i < 3; i++) tt_peer_close(&peers[i]);
  TT_WAIT_UNTIL(s->count == 0);
  server_stop(s);
}

Test(connection, a_full_store_still_hears_of_the_end) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;

  join(s, &peer, 1);
  s->store.full = true;
  tt_peer_close(&peer);
  TT_WAIT_UNTIL(s->metrics.connections == 0);
  cr_assert_eq(s->count, 1, "what is left waits for room");
  s->store.full = false;
  TT_WAIT_UNTIL(s->store.detaches == 1 && s->count == 0);
  server_stop(s);
}

static void small_credit(struct tc_config *config) {
  config->agents_credit = 262144;
}

Test(connection, credit_is_given_back_and_going_past_it_is_refused) {
  struct server *s = server_start(small_credit);
  struct tt_peer peer;
  static char batch[60000];

  join(s, &peer, 1);
  for (uint64_t seq = 1; seq <= 40; seq++) { /* one window is 4 of these records */
    cr_assert(tt_peer_send_frame(&peer, TP_BATCH, seq, 1, batch, sizeof batch));
    cr_assert_eq(acked(&peer, seq), seq);
  }
  s->store.silent = true; /* the store answers no more */
  for (uint64_t seq = 41; seq <= 46; seq++)
    if (!tt_peer_send_frame(&peer, TP_BATCH, seq, 1, batch, sizeof batch)) break;
  expect_refusal(&peer, "exceeds the credit");
  tt_peer_close(&peer);
  server_stop(s);
}

Test(connection, a_drain_says_goaway_acks_what_was_taken_and_closes) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;
  struct tp_frame frame;

  join(s, &peer, 1);
  for (uint64_t seq = 1; seq <= 5; seq++)
    cr_assert(tt_peer_send_frame(&peer, TP_BATCH, seq, 1, "abc", 3));
  TT_WAIT_UNTIL(s->store.records == 5);
  cr_assert(tc_loop_post(&s->host.loop, TC_SENDER_MAIN, (void *)(uintptr_t)DRAIN));
  cr_assert(tt_peer_wait_for(&peer, TP_GOAWAY, &frame), "%s", peer.why);
  while (tt_peer_read_frame(&peer, &frame)) {
  }
  cr_assert_str_eq(peer.why, "closed in order");
  tt_peer_close(&peer);
  TT_WAIT_UNTIL(s->count == 0);
  server_stop(s);
}

Test(connection, an_old_connection_is_asked_to_come_back_with_all_acked) {
  struct server *s = server_start(NULL);
  struct tt_peer peer;
  struct tp_frame frame;

  join(s, &peer, 1);
  cr_assert(tt_peer_send_frame(&peer, TP_BATCH, 1, 1, "abc", 3));
  cr_assert_eq(acked(&peer, 1), 1);
  cr_assert(tc_loop_post(&s->host.loop, TC_SENDER_MAIN, (void *)(uintptr_t)AGE));
  cr_assert(tt_peer_wait_for(&peer, TP_GOAWAY, &frame), "%s", peer.why);
  cr_assert_not(tt_peer_read_frame(&peer, &frame));
  cr_assert_str_eq(peer.why, "closed in order");
  tt_peer_close(&peer);
  TT_WAIT_UNTIL(s->count == 0);
  server_stop(s);
}

Test(connection, after_the_store_failed_nobody_is_taken_in) {
  struct server *s = server_start(NULL);
  struct tt_peer_terms terms = agent_of(s);
  struct tt_peer peer;
  unsigned char stream[16] = { 1 };

  cr_assert(tc_loop_post(&s->host.loop, TC_SENDER_MAIN, (void *)(uintptr_t)FAIL));
  cr_assert(tt_peer_open(&peer, &terms));
  cr_assert(tt_peer_hello(&peer, stream, "shop"));
  expect_refusal(&peer, "cannot store at this time");
  tt_peer_close(&peer);
  server_stop(s);
}

static void two_a_name(struct tc_config *config) {
  config->agents_identity_connections_max = 2;
}

Test(connection, one_name_has_its_share_of_connections_and_others_have_theirs) {
  struct server *s = server_start(two_a_name);
  struct tt_peer_terms terms = agent_of(s);
  struct tt_peer first, second, third, other;

  join(s, &first, 1);
  join(s, &second, 2);
  cr_assert(tt_peer_open(&third, &terms), "%s", third.why);
  expect_refusal(&third, "agents.identity_connections_max is 2 for one certificate name");
  tt_peer_close(&third);
  tt_certs_issue(s->host.dir, "other", "URI:tracecollect:agent/other", 1000);
  terms.name = "other";
  unsigned char stream[16] = { 3 };
  struct tp_frame frame;
  cr_assert(tt_peer_open(&other, &terms), "%s", other.why);
  cr_assert(tt_peer_hello(&other, stream, "shop"));
  cr_assert(tt_peer_wait_for(&other, TP_WELCOME, &frame), "%s", other.why);

  tt_peer_close(&first);
  TT_WAIT_UNTIL(s->count == 2);
  join(s, &first, 1);
  tt_peer_close(&first);
  tt_peer_close(&second);
  tt_peer_close(&other);
  server_stop(s);
}

static void impatient(struct tc_config *config) {
  config->agents_frame_time = 300000000;
  config->agents_frame_rate_min = 1024;
}

static void let_it_tick(struct server *s) {
  uint64_t beats = atomic_load(&s->host.loop.beats);

  TT_WAIT_UNTIL(atomic_load(&s->host.loop.beats) != beats);
}

static void begin_a_frame(struct tt_peer *peer) {
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame = {
    .kind = TP_BATCH, .flags = TP_CRITICAL, .seq = 1, .gen = 1, .payload_crc = 1, .len = 60000
  };

  tp_frame_head_summed(&frame, head);
  cr_assert(tt_peer_send(peer, head, sizeof head));
}

Test(connection, a_frame_that_trickles_is_refused) {
  struct server *s = server_start(impatient);
  struct tt_peer peer;

  join(s, &peer, 1);
  begin_a_frame(&peer);
  /* A byte now and then: the peer is never silent, but never finishes. */
  for (int i = 0; atomic_load(&s->metrics.peers_refused_total) == 0 && i < 5000; i++) {
    cr_assert(tt_peer_send(&peer, "x", 1), "%s", peer.why);
    let_it_tick(s);
  }
  expect_refusal(&peer, " s: too slow");
  tt_peer_close(&peer);
  TT_WAIT_UNTIL(s->count == 0);
  server_stop(s);
}

/* A limit that distinguishes one slow frame from all frames together, and tolerates a machine
 * that pauses for a moment. */
static void patient_with_one(struct tc_config *config) {
  config->agents_frame_time = 900000000;
  config->agents_frame_rate_min = 1024;
}

Test(connection, frames_that_come_fast_one_after_the_other_are_not_one_slow_frame) {
  struct server *s = server_start(patient_with_one);
  struct tt_peer peer;
  uint64_t seq = 0;

  join(s, &peer, 1);
  uint64_t end_ns = uv_hrtime() + 1000000000;
  /* Each frame is sent in two halves, so that the server always finds a frame that has begun. */
  do {
    unsigned char bytes[TP_HEADER_BYTES + 100] = { 0 };
    struct tp_frame frame = { .kind = TP_BATCH,
                              .flags = TP_CRITICAL,
                              .seq = ++seq,
                              .gen = 1,
                              .payload = bytes + TP_HEADER_BYTES,
                              .len = 100 };
    tp_frame_head(&frame, bytes);
    cr_assert(tt_peer_send(&peer, bytes, 50), "%s", peer.why);
    let_it_tick(s);
    cr_assert(tt_peer_send(&peer, bytes + 50, sizeof bytes - 50), "%s", peer.why);
  } while (uv_hrtime() < end_ns);
  cr_assert_eq(acked(&peer, seq), seq);
  tt_peer_close(&peer);
  server_stop(s);
}

Test(connection, those_that_came_together_leave_within_a_fifth_of_their_age) {
  uint64_t min = UINT64_MAX, max = 0;

  for (uint64_t id = 1; id <= 1000; id++) {
    uint64_t age = tc__spread_age(100000, id);
    if (age < min) min = age;
    if (age > max) max = age;
  }
  cr_expect(min >= 90000 && min < 91000, "the first after %d ms", (int)min);
  cr_expect(max > 109000 && max <= 110000, "the last after %d ms", (int)max);
}

/* The agent must not try again with the same certificate. */
Test(connection, a_refused_certificate_is_refused_for_good) {
  struct server *s = server_start(NULL);
  struct tt_peer_terms terms = agent_of(s);
  struct tt_peer peer;
  struct tp_frame frame;

  terms.name = "reader";
  cr_assert(tt_peer_open(&peer, &terms), "%s", peer.why);
  cr_assert(tt_peer_wait_for(&peer, TP_REFUSE, &frame), "%s", peer.why);
  Tracecollect__V1__Refuse *refuse =
      tracecollect__v1__refuse__unpack(NULL, frame.len, frame.payload);
  cr_assert_not_null(refuse);
  cr_expect_eq(refuse->code, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_IDENTITY);
  cr_expect(refuse->permanent);
  tracecollect__v1__refuse__free_unpacked(refuse, NULL);
  tt_peer_close(&peer);
  server_stop(s);
}
