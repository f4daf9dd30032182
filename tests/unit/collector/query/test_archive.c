/* SPDX-License-Identifier: Apache-2.0 */
/* The archive service with a real store behind it and tracectl's client before it, over ipc and
 * tls+tcp sockets. */
#include <nng/nng.h>

#include <criterion/criterion.h>
#include <fcntl.h>
#include <nng/supplemental/util/platform.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/meta.h"
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

/* What the catalog has is lost to its writer, who finds out with the next row and rebuilds it under the readers. */
static void break_catalog(void) {
  char path[160];
  sqlite3 *db;

  snprintf(path, sizeof path, "%s/catalog.sqlite", host.store.dir);
  cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(db, "DROP TABLE segments", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
}

Test(archive, a_catalog_that_is_rebuilt_is_the_one_that_is_asked) {
  struct tk_client *c = client();
  struct tt_writer w = writer(1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 3, 500);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  cr_assert_eq(list(c, NULL, 0, 0)->n_segments, 1);
  for (uint64_t gen = 2; gen <= 4; gen++) {
    break_catalog();
    tt_generation(&w, gen, 3, 500);
    cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
    for (int asked = 0; asked < 8; asked++) /* each worker, in turn */
      cr_assert_eq(list(c, NULL, 0, 0)->n_segments, gen);
  }
  tk_client_close(c);
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

Test(archive, status_tells_of_collector_and_streams) {
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  Tracecollect__V1__StatusRequest ask = TRACECOLLECT__V1__STATUS_REQUEST__INIT;
  const Tracecollect__V1__Reply *reply;
  struct tt_writer w = writer(1, 7);
  struct tk_client *c = client();

  tt_header(&w);
  tt_generation(&w, 1, 5, 1000);
  tt_barrier(&host.store);
  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_STATUS;
  request.status = &ask;
  cr_assert_eq(tk_client_ask(c, &request, &diag, &reply), TB_OK, "%s", diag.text);
  cr_assert_str_eq(reply->status->version, "9.9.9");
  cr_assert_str_eq(reply->status->level, "durable");
  cr_assert_str_eq(reply->status->health, "ok");
  cr_assert_eq(reply->status->n_streams, 1);
  cr_assert_str_eq(reply->status->streams[0]->service, "shop");
  cr_assert_str_eq(reply->status->streams[0]->identity, "tracecollect:agent/a");
  cr_assert_eq(reply->status->streams[0]->generations, 1);
  cr_assert_eq(reply->status->streams[0]->bytes, 5000 + 16);
  tk_client_close(c);
}

Test(archive, a_settled_list_sees_everything_acked_before_it) {
  struct tk_client *c = client();
  struct tt_writer w = writer(1, 7);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 20; gen++) {
    tt_generation(&w, gen, 3, 500);
    if (gen == 20) tt_close(&w);
    cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
    const Tracecollect__V1__ListReply *got = list(c, NULL, 0, 0);
    cr_assert_eq(got->n_segments, gen, "after generation %lu: %zu segments", gen, got->n_segments);
    cr_assert_eq(got->segments[gen - 1]->last_gen, gen);
    cr_assert_eq(got->n_streams, 1);
  }
  tk_client_close(c);
}

Test(archive, pages_go_on_where_the_last_one_ended) {
  struct tt_writer a = writer(1, 7), b = writer(2, 8);
  struct tk_client *c = client();
  uint64_t after = 0, seen = 0;

  tt_header(&a);
  tt_header(&b);
  for (uint64_t gen = 1; gen <= 5; gen++) {
    tt_generation(&a, gen, 1, 100);
    tt_generation(&b, gen, 1, 100);
  }
  for (bool more = true; more;) {
    const Tracecollect__V1__ListReply *got = list(c, NULL, 3, after);
    cr_assert_leq(got->n_segments, 3);
    cr_assert_gt(got->n_segments, 0);
    for (size_t i = 0; i < got->n_segments; i++, seen++)
      cr_assert_eq(got->segments[i]->first_gen, seen % 5 + 1);
    after = got->segments[got->n_segments - 1]->id;
    more = got->more;
  }
  cr_assert_eq(seen, 10);
  tk_client_close(c);
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

/* Its row says so only when all of a round is through. */
Test(archive, a_segment_that_retention_takes_at_this_moment_has_expired) {
  const Tracecollect__V1__ReadReply *chunk;
  struct tt_writer w = writer(1, 7);
  struct tk_client *c = client();
  int state_fd = tc_store_dirfd(host.store.store), fd;
  unsigned char *bytes;
  char name[300];
  tc_meta *meta;
  size_t n;

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 2; gen++) tt_generation(&w, gen, 1, 4000); /* a file each */
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  tt_barrier(&host.store);
  const Tracecollect__V1__SegmentInfo *first = list(c, NULL, 0, 0)->segments[0];
  uint64_t id = first->id;
  cr_assert_not(first->open);
  snprintf(name, sizeof name, "%s", first->path);
  cr_assert_eq(unlinkat(state_fd, name, 0), 0, "%s", name);
  cr_assert_eq(read_chunk(c, id, 0, 16, &chunk), TB_NOTFOUND);
  cr_assert_not_null(strstr(diag.text, "No such file"), "%s", diag.text);

  strcpy(strrchr(name, '.'), ".meta");
  cr_assert_eq(tc_meta_read(state_fd, name, &diag, &meta), TB_OK, "%s", diag.text);
  meta->expired = true;
  cr_assert_eq(tc_meta_pack(meta, NULL, &bytes, &n), TB_OK);
  fd = openat(state_fd, name, O_WRONLY | O_TRUNC);
  cr_assert_eq(write(fd, bytes, n), n);
  close(fd);
  free(bytes);
  tc_meta_free(meta);
  cr_assert_eq(read_chunk(c, id, 0, 16, &chunk), TB_NOTFOUND);
  cr_assert_not_null(strstr(diag.text, " has expired"), "%s", diag.text);
  tk_client_close(c);
}

Test(archive, detail_names_generations_and_losses) {
  struct tt_writer w = writer(1, 7);
  struct tk_client *c = client();

  tt_header(&w);
  tt_generation(&w, 1, 1, 100);
  tt_loss(&w, 2, 4, 30, 3000);
  tt_generation(&w, 5, 1, 100);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  const Tracecollect__V1__ListReply *got = list(c, NULL, 0, 0);
  cr_assert_eq(got->n_segments, 2);
  size_t losses = 0;
  for (size_t i = 0; i < got->n_segments; i++)
    for (size_t k = 0; k < got->segments[i]->n_losses; k++, losses++) {
      cr_assert_eq(got->segments[i]->losses[k]->first_gen, 2);
      cr_assert_eq(got->segments[i]->losses[k]->last_gen, 4);
    }
  cr_assert_eq(losses, 1);
  tk_client_close(c);
}

Test(archive, reports_of_live_streams_are_found_by_name) {
  Tracecollect__V1__StreamReport report = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  const Tracecollect__V1__ReportReply *got;
  struct tk_selector selector = { .service = "shop" };
  struct tk_client *c = client();
  unsigned char bytes[256];
  char shop[] = "shop", kind[] = "stw", window[] = "10s";

  report.service = shop;
  report.kind = kind;
  report.window = window;
  report.events = 4711;
  size_t n = tracecollect__v1__stream_report__pack(&report, bytes);
  struct tc_report row = { .stream = (const unsigned char *)"0123456789abcdef",
                           .service = "shop",
                           .instance = "i",
                           .kind = "stw",
                           .window = "10s",
                           .bytes = bytes,
                           .len = n };
  cr_assert_eq(tc_reports_publish(host.reports, &row), TB_OK);
  cr_assert_eq(tk_client_report(c, "stw", "10s", &selector, &diag, &got), TB_OK, "%s", diag.text);
  cr_assert_eq(got->n_reports, 1);
  cr_assert_eq(got->reports[0]->events, 4711);
  cr_assert_eq(tk_client_report(c, "syscall", "10s", &selector, &diag, &got), TB_OK, "%s",
               diag.text);
  cr_assert_eq(got->n_reports, 0);
  selector.service = "other";
  cr_assert_eq(tk_client_report(c, "stw", "10s", &selector, &diag, &got), TB_OK, "%s", diag.text);
  cr_assert_eq(got->n_reports, 0);
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

/* --- verify ------------------------------------------------------------------------------------ */

static tb_rc verify(struct tk_client *c, const Tracecollect__V1__VerifyReply **out) {
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  Tracecollect__V1__VerifyRequest ask = TRACECOLLECT__V1__VERIFY_REQUEST__INIT;
  const Tracecollect__V1__Reply *reply;

  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_VERIFY;
  request.verify = &ask;
  tb_rc rc = tk_client_ask(c, &request, &diag, &reply);
  if (rc == TB_OK) *out = reply->verify;
  return rc;
}

Test(archive, verify_finds_a_flipped_bit) {
  const Tracecollect__V1__VerifyReply *seen;
  struct tt_writer w = writer(1, 7);
  struct tk_client *c = client();

  tt_header(&w);
  tt_generation(&w, 1, 10, 1000);
  tt_close(&w);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  const Tracecollect__V1__SegmentInfo *segment = list(c, NULL, 0, 0)->segments[0];
  char path[200];
  snprintf(path, sizeof path, "%s", segment->path);
  tt_flip(&host.store, path, 4711);
  cr_assert_eq(verify(c, &seen), TB_OK, "%s", diag.text);
  /* What is fresh is left for later; then it must be seen. */
  for (int ms = 0; ms < TT_PATIENCE_MS && seen->problem_count == 0 && seen->fresh != 0; ms += 25) {
    nng_msleep(25);
    cr_assert_eq(verify(c, &seen), TB_OK, "%s", diag.text);
  }
  cr_assert_gt(seen->problem_count, 0);
  cr_assert_not_null(strstr(seen->problems[0], "0000000000000001"), "%s", seen->problems[0]);
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
