/* SPDX-License-Identifier: Apache-2.0 */
/* The archive service with a real store behind it and tracectl's client before it, over ipc and
 * tls+tcp sockets. */
#include <nng/nng.h>

#include <criterion/criterion.h>
#include <nng/supplemental/util/platform.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "collector/net/tls_context.h"
#include "support/archive_host.h"
#include "support/certs.h"
#include "support/patience.h"
#include "tools/tracectl/remote/client.h"

static struct tt_host host;
static struct tb_diag diag;

static void open_host(void) {
  tb_diag_clear(&diag);
  tt_host_open(&host, NULL, NULL, 1);
  setenv("TRACECTL_CONFIG", "/dev/null", 1);
}

static void close_host(void) {
  tt_host_close(&host);
}

TestSuite(archive, .init = open_host, .fini = close_host);

static struct tk_client *client(void) {
  struct tk_client_args args = { .server = tc_archive_url(host.archive, 0) };
  struct tk_client *c;

  cr_assert_eq(tk_client_open(&args, &diag, &c), TB_OK, "%s", diag.text);
  return c;
}

static struct tt_writer writer(uint64_t conn, unsigned id) {
  return tt_host_writer(&host, conn, id);
}

/* On a slow disk a catalog is rebuilt for longer than the service waits. */
static tb_rc ask_patiently(struct tk_client *c, Tracecollect__V1__Request *request,
                           const Tracecollect__V1__Reply **out) {
  tb_rc rc;

  for (int waits = 0; waits < TT_PATIENCE_S / 3; waits++) {
    tb_diag_clear(&diag);
    rc = tk_client_ask(c, request, &diag, out);
    if (rc != TB_BUSY || strstr(diag.text, "; ask again") == NULL) break;
  }
  return rc;
}

static const Tracecollect__V1__ListReply *
list(struct tk_client *c, Tracecollect__V1__Selector *which, uint32_t limit, uint64_t after) {
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  Tracecollect__V1__ListRequest ask = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  const Tracecollect__V1__Reply *reply;

  ask.selector = which;
  ask.limit = limit;
  ask.after = after;
  ask.settle = true;
  ask.detail = true;
  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_LIST;
  request.list = &ask;
  tb_rc rc = ask_patiently(c, &request, &reply);
  cr_assert_eq(rc, TB_OK, "%s", diag.text);
  return reply->list;
}

static tb_rc read_chunk(struct tk_client *c, uint64_t segment, uint64_t offset, uint32_t bytes,
                        const Tracecollect__V1__ReadReply **out) {
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  Tracecollect__V1__ReadRequest ask = TRACECOLLECT__V1__READ_REQUEST__INIT;
  const Tracecollect__V1__Reply *reply;

  ask.segment = segment;
  ask.offset = offset;
  ask.bytes = bytes;
  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_READ;
  request.read = &ask;
  tb_diag_clear(&diag);
  tb_rc rc = tk_client_ask(c, &request, &diag, &reply);
  if (rc == TB_OK) *out = reply->read;
  return rc;
}

Test(archive, a_segment_is_read_in_checked_chunks) {
  const Tracecollect__V1__ReadReply *chunk;
  struct tt_writer w = writer(1, 7);
  struct tk_client *c = client();
  unsigned char want[4000];

  tt_header(&w);
  tt_generation(&w, 1, 100, 4000);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  uint64_t id = list(c, NULL, 0, 0)->segments[0]->id;

  cr_assert_eq(read_chunk(c, id, 0, 16, &chunk), TB_OK);
  cr_assert_eq(memcmp(chunk->data.data, "go 1.26 trace\0\0\0", 16), 0);
  cr_assert_not(chunk->eof);
  cr_assert_eq(chunk->total, 16 + 100 * 4000);
  for (unsigned i = 0; i < 100; i++) {
    cr_assert_eq(read_chunk(c, id, 16 + 4000 * i, 4000, &chunk), TB_OK, "%s", diag.text);
    tt_fill(want, sizeof want, 1, i);
    cr_assert_eq(chunk->data.len, 4000);
    cr_assert_eq(memcmp(chunk->data.data, want, 4000), 0);
    cr_assert_eq(chunk->crc, tb_crc32c(0, want, 4000));
    cr_assert_eq(chunk->eof, i == 99);
  }
  cr_assert_eq(read_chunk(c, id, 16 + 100 * 4000, 0, &chunk), TB_OK);
  cr_assert(chunk->eof && chunk->data.len == 0);
  cr_assert_eq(read_chunk(c, id, 1 << 30, 0, &chunk), TB_NOTFOUND);
  cr_assert_eq(read_chunk(c, 4711, 0, 0, &chunk), TB_NOTFOUND);
  cr_assert_str_eq(diag.text, "no segment 4711");
  cr_assert_eq(read_chunk(c, id, 0, UINT32_MAX, &chunk), TB_OK); /* cut to 1 MiB */
  tk_client_close(c);
}

Test(archive, eight_readers_are_served_at_once) {
  struct tt_writer w = writer(1, 7);
  struct tk_client *c[8];

  tt_header(&w);
  tt_generation(&w, 1, 10, 1000);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  for (int i = 0; i < 8; i++) c[i] = client();
  for (int round = 0; round < 20; round++)
    for (int i = 0; i < 8; i++) cr_assert_eq(list(c[i], NULL, 0, 0)->n_segments, 1);
  for (int i = 0; i < 8; i++) tk_client_close(c[i]);
}

Test(archive, a_question_that_is_none_gets_an_answer) {
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  const Tracecollect__V1__Reply *reply;
  struct tk_client *c = client();

  cr_assert_eq(tk_client_ask(c, &request, &diag, &reply), TB_UNSUPPORTED);
  cr_assert_str_eq(diag.text, "this collector does not know that question");
  tk_client_close(c);
}

Test(archive, stopping_under_questions_leaves_nobody_hanging) {
  struct tk_client *c = client();

  list(c, NULL, 0, 0);
  tc_query_stop(host.query);
  tc_archive_stop(host.archive);
  host.archive = NULL;
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  Tracecollect__V1__StatusRequest ask = TRACECOLLECT__V1__STATUS_REQUEST__INIT;
  const Tracecollect__V1__Reply *reply;
  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_STATUS;
  request.status = &ask;
  cr_assert_eq(tk_client_ask(c, &request, &diag, &reply), TB_IO);
  cr_assert_not_null(strstr(diag.text, "the connection was lost"), "%s", diag.text);
  tk_client_close(c);
}

/* --- over TLS ---------------------------------------------------------------------------------- */

static char certs[64];
static struct tc_nng_tls *tls;

static void open_tls_host(void) {
  static const struct tc_tls_terms plain = { .alpn = NULL };
  struct tc_nng_terms terms = { .server = true, .peer_act = TC_ACT_FEED };

  tb_diag_clear(&diag);
  strcpy(certs, "/tmp/tc_archive_XXXXXX");
  cr_assert_not_null(mkdtemp(certs));
  tt_certs_make(certs);
  cr_assert_eq(tc_tls_context_new(certs, &plain, &diag, &terms.ctx), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_nng_tls_new(&terms, &diag, &tls), TB_OK, "%s", diag.text);
  SSL_CTX_free(terms.ctx);
  tt_host_open(&host, "tls+tcp://127.0.0.1:0", tls, 1);
  setenv("TRACECTL_CONFIG", "/dev/null", 1);
}

static void close_tls_host(void) {
  char command[96];

  tt_host_close(&host);
  tc_nng_tls_free(tls);
  snprintf(command, sizeof command, "rm -r %s", certs);
  cr_assert_eq(system(command), 0);
}

TestSuite(archive_tls, .init = open_tls_host, .fini = close_tls_host);

Test(archive_tls, a_reader_is_answered) {
  struct tk_client_args args = { .server = tc_archive_url(host.archive, 0), .certs = certs };
  const Tracecollect__V1__ReadReply *chunk;
  struct tt_writer w = writer(1, 7);
  struct tk_client *c;

  tt_header(&w);
  tt_generation(&w, 1, 100, 10000);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  cr_assert_eq(tk_client_open(&args, &diag, &c), TB_OK, "%s", diag.text);
  uint64_t id = list(c, NULL, 0, 0)->segments[0]->id;
  cr_assert_eq(read_chunk(c, id, 0, 1 << 20, &chunk), TB_OK, "%s", diag.text);
  cr_assert_eq(chunk->data.len, 16 + 100 * 10000);
  cr_assert_eq(tb_crc32c(0, chunk->data.data, chunk->data.len), chunk->crc);
  tk_client_close(c);
}

Test(archive_tls, an_agent_is_told_that_it_may_not_read) {
  char cert[96], key[96];
  struct tk_client_args args = {
    .server = tc_archive_url(host.archive, 0), .certs = certs, .tls_cert = cert, .tls_key = key
  };
  struct tk_client *c;

  snprintf(cert, sizeof cert, "%s/agent.pem", certs);
  snprintf(key, sizeof key, "%s/agent.key", certs);
  tb_rc rc = tk_client_open(&args, &diag, &c);
  if (rc == TB_OK) { /* the alert may come only with the first answer */
    Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
    const Tracecollect__V1__Reply *reply;
    rc = tk_client_ask(c, &request, &diag, &reply);
    tk_client_close(c);
  }
  cr_assert_eq(rc, TB_REFUSED, "%s", diag.text);
  cr_assert_not_null(strstr(diag.text, "alert bad certificate"), "%s", diag.text);
}
