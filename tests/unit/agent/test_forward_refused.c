/* SPDX-License-Identifier: Apache-2.0 */
/* A stream and a collector that refuse each other. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/agent/forward_scene.h"
#include "tls/authority.h"

static bool is_refused(const struct ta_forward_status *status, const char *unused) {
  (void)unused;
  return status->state == TA_STATE_REFUSED;
}

Test(forward_refused, a_refusal_for_good_ends_the_stream_by_name) {
  struct scene s =
      scene_begin((struct tt_collector_rules){ .refuse_code = 2, .refuse_permanent = true }, 0);

  cr_assert(until(s.f, is_refused, NULL));
  cr_assert_str_eq(status_of(s.f).last_error,
                   "collector refuses: REFUSE_IDENTITY: the test wants it");
  cr_assert_eq(ta_forward_write(s.f, "go 1.26 trace\0\0", 16), TA_E_REFUSED);
  cr_assert_eq(ta_forward_close(s.f, 1000), TA_E_REFUSED);
  scene_end(&s);
}

Test(forward_refused, a_refusal_for_now_is_waited_out) {
  struct scene s = scene_begin((struct tt_collector_rules){ .refuse_code = 7 }, 0);
  struct tt_stream t = tt_stream_make(26, 2, 4, 1000);

  write_all(s.f, &t, 4096);
  cr_assert(until(s.f, error_says, "refuses at present: REFUSE_STORAGE"));
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

Test(forward_refused, a_collector_of_another_authority_is_not_spoken_to) {
  struct scene s = scene_begin((struct tt_collector_rules){ .refuse_code = 7 }, 0);
  char other[] = "/tmp/tt-forward-XXXXXX";

  cr_assert_not_null(mkdtemp(other));
  tt_certs_make(other);
  tt_collector_down(s.collector); /* a handshake in progress uses the old certificates */
  tt_collector_rule(s.collector, (struct tt_collector_rules){ .certs = other });
  tt_collector_up(s.collector);
  cr_assert(until(s.f, error_says, "collector's certificate: "));
  cr_assert_eq(seen_by(&s).connections, 0);
  cr_assert_neq(status_of(s.f).state,
                TA_STATE_REFUSED); /* tried again: the certificate may be renewed */
  ta_forward_close(s.f, 0);
  remove_certs(other);
  scene_end(&s);
}

/* A collector whose key was stolen; the list is read again for each connection. */
Test(forward_refused, a_collector_whose_certificate_was_revoked_is_not_spoken_to) {
  struct scene s = scene_begin((struct tt_collector_rules){ .refuse_code = 7 }, 0), other;
  char list[128], server[128], key[128];
  struct tc_certs_revoked done;
  struct tb_diag diag;

  ta_forward_close(s.f, 0);
  other = s;
  strcpy(other.dir, "/tmp/tt-lists-XXXXXX");
  cr_assert_not_null(mkdtemp(other.dir));
  snprintf(list, sizeof list, "%s/crl.pem", other.dir);
  snprintf(key, sizeof key, "%s/agent.key", other.dir);
  snprintf(server, sizeof server, "%s/server.pem", other.dir);
  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_init(other.dir, (struct tc_cert_days){ 0 }, &diag), TB_OK, "%s", diag.text);
  tt_collector_down(s.collector);
  tt_collector_rule(s.collector, (struct tt_collector_rules){ .certs = other.dir });
  tt_collector_up(s.collector);

  struct ta_forward_config config = { .server = "127.0.0.1:1", .certs = other.dir, .service = "s" };
  cr_assert_eq(setenv("TRACEAGENT_CRL", list, 1), 0);
  cr_assert_eq(ta_forward_open(&config, &other.f), TA_E_CERT, "it is not there");
  cr_assert_eq(setenv("TRACEAGENT_CRL", key, 1), 0);
  cr_assert_eq(ta_forward_open(&config, &other.f), TA_E_CERT, "it is no list");
  cr_assert_eq(setenv("TRACEAGENT_CRL", list, 1), 0);

  uint64_t before = seen_by(&s).connections;
  cr_assert_eq(tc_certs_revoke(other.dir, "5A01", 0, &diag, &done), TB_OK, "%s", diag.text);
  other.f = dial(&other, 0);
  cr_assert(tt_collector_wait(s.collector, has_connections, before + 1), "not the one listed");
  cr_assert_eq(tc_certs_revoke(other.dir, server, 0, &diag, &done), TB_OK, "%s", diag.text);
  tt_collector_down(s.collector);
  tt_collector_up(s.collector);
  cr_assert(until(other.f, error_says, "collector's certificate: certificate revoked"));
  cr_assert_eq(seen_by(&s).connections, before + 1);
  ta_forward_close(other.f, 0);
  remove_certs(other.dir);
  scene_end(&s);
}

Test(forward_refused, a_certificate_that_is_no_collectors_is_not_spoken_to) {
  static const char *const sans[] = {
    "URI:tracecollect:agent/test,IP:127.0.0.1", /* another role */
    "URI:tracecollect:server/a,URI:tracecollect:server/b",
    "DNS:elsewhere.example", /* without a URI the name must match */
  };

  for (int i = 0; i < 3; i++) {
    struct scene s = scene_begin((struct tt_collector_rules){ .refuse_code = 7 }, 0);
    tt_certs_issue(s.dir, "server", sans[i], 3600);
    cr_assert(until(s.f, error_says, i < 2 ? "no single SAN URI" : "is not for 127.0.0.1"), "%s",
              sans[i]);
    cr_assert_eq(seen_by(&s).connections, 0);
    ta_forward_close(s.f, 0);
    scene_end(&s);
  }
}

Test(forward_refused, a_public_certificate_for_the_host_will_do) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);

  ta_forward_close(s.f, 0);
  tt_certs_issue(s.dir, "server", "IP:127.0.0.1", 3600);
  s.f = dial(&s, 0);
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  scene_end(&s);
}

Test(forward_refused, a_server_without_our_alpn_is_not_spoken_to) {
  struct scene s = scene_begin((struct tt_collector_rules){ .no_alpn = true }, 0);

  cr_assert(until(s.f, error_says, "does not speak tracecollect/1"));
  cr_assert_eq(seen_by(&s).connections, 0);
  ta_forward_close(s.f, 0);
  scene_end(&s);
}

Test(forward_refused, the_collectors_alert_is_the_last_error) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);

  ta_forward_close(s.f, 0);
  tt_certs_issue(s.dir, "agent", "URI:tracecollect:agent/test", -60); /* expired */
  s.f = dial(&s, 0);
  cr_assert(until(s.f, error_says, "certificate expired"));
  ta_forward_close(s.f, 0);
  scene_end(&s);
}

Test(forward_refused, a_collector_that_acks_what_was_not_sent_is_left) {
  struct scene s = scene_begin((struct tt_collector_rules){ .ack_ahead = 5 }, 0);
  struct tt_stream t = tt_stream_make(26, 1, 1, 1000);

  write_all(s.f, &t, t.n);
  cr_assert(until(s.f, error_says, "collector acks record"));
  tt_collector_rule(s.collector, (struct tt_collector_rules){ 0 });
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  expect_trace(&s, &t);
  tt_stream_free(&t);
  scene_end(&s);
}

/* A server that is not a collector: it sends data without end to anyone who connects. */
struct talker {
  int fd;
  char address[32];
  pthread_t thread;
};

static void *talk(void *self) {
  static const char noise[16 << 10];
  struct talker *t = self;

  for (int fd; (fd = accept(t->fd, NULL, NULL)) >= 0; close(fd))
    while (send(fd, noise, sizeof noise, MSG_NOSIGNAL) > 0) continue;
  return NULL;
}

static void talker_start(struct talker *t) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t len = sizeof at;

  t->fd = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(bind(t->fd, (struct sockaddr *)&at, len), 0);
  cr_assert_eq(listen(t->fd, 8), 0);
  cr_assert_eq(getsockname(t->fd, (struct sockaddr *)&at, &len), 0);
  snprintf(t->address, sizeof t->address, "127.0.0.1:%u", ntohs(at.sin_port));
  cr_assert_eq(pthread_create(&t->thread, NULL, talk, t), 0);
}

Test(forward_refused, who_talks_without_end_is_heard_in_pieces_and_left) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
  struct talker t;

  ta_forward_close(s.f, TT_PATIENCE_MS);
  talker_start(&t);
  struct ta_forward_config config = { .server = t.address, .certs = s.dir, .service = "shop" };
  cr_assert_eq(ta_forward_open(&config, &s.f), 0);
  cr_assert(until(s.f, error_says, "TLS: "));
  cr_assert_neq(status_of(s.f).state, TA_STATE_REFUSED);
  ta_forward_close(s.f, 0);
  shutdown(t.fd, SHUT_RDWR);
  pthread_join(t.thread, NULL);
  close(t.fd);
  scene_end(&s);
}
