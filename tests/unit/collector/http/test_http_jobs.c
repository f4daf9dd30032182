/* SPDX-License-Identifier: Apache-2.0 */
/* Long jobs over HTTP, and questions that wait for the store. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/archive_host.h"
#include "support/http_reader.h"
#include "support/patience.h"
#include "support/peer.h"

static struct tt_host host;
static struct tt_http *server;
static struct tt_reader reader;

static void start(const struct tc_http_limits *limits) {
  tt_host_open(&host, 1);
  server = tt_http_start("0.0.0.0:0", limits, host.query);
  tt_reader_open(&reader, server);
}

static void fini(void) {
  tt_reader_close(&reader);
  tt_http_stop(server);
  tt_host_close(&host);
}

static void init(void) {
  start(NULL);
}

TestSuite(http_jobs, .init = init, .fini = fini);
TestSuite(http_jobs_left, .fini = fini);

static struct tt_writer write_generations(uint64_t n) {
  struct tt_writer w = tt_host_writer(&host, 1, 7);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= n; gen++) tt_generation(&w, gen, 10, 1000);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  return w;
}

/* Begins a job, and returns its path from the Location field. */
static const char *begin_job(const char *text) {
  static char path[80];

  cr_assert_eq(tt_ask(&reader, "POST /api/v1/verify", "", text), 202, "%s", reader.answer);
  const char *field = strstr(reader.answer, "\r\nLocation: /api/v1/jobs/");
  cr_assert_not_null(field, "%s", reader.answer);
  snprintf(path, sizeof path, "%.*s", (int)strcspn(field + 12, "\r"), field + 12);
  return path;
}

static int get(const char *path, const char *query, const char *fields) {
  char request[200];

  snprintf(request, sizeof request, "GET %s%s", path, query);
  return tt_ask(&reader, request, fields, NULL);
}

static int end_job(const char *path) {
  char request[200];

  snprintf(request, sizeof request, "DELETE %s", path);
  return tt_ask(&reader, request, "", NULL);
}

#define EXPECT(part)                                                                               \
  cr_assert_not_null(strstr(reader.body, part), "%s is not in\n%s", part, reader.answer)

static void wait_for_end(const char *path) {
  for (int polls = 0; polls < TT_PATIENCE_S; polls++) {
    cr_assert_eq(get(path, "?wait=1s", ""), 200, "%s", reader.answer);
    if (strstr(reader.body, "\"running\"") == NULL) return;
  }
  cr_assert_fail("%s", reader.answer);
}

Test(http_jobs, a_verification_is_begun_followed_and_forgotten) {
  write_generations(3);
  const char *path = begin_job("{}");
  cr_assert_not_null(strstr(reader.body, path + strlen("/api/v1/jobs/")), "%s", reader.answer);
  wait_for_end(path);
  EXPECT("\"state\":\"done\",");
  EXPECT("\"problem_count\":0,");
  cr_assert_eq(get(path, "?wait=20s", ""), 200, "an end is not waited for twice");
  cr_assert_eq(get(path, "", "Accept: application/protobuf\r\n"), 200);
  cr_assert_not_null(strstr(reader.answer, "proto=tracecollect.v1.Job\r\n"), "%s", reader.answer);
  Tracecollect__V1__Job *job =
      tracecollect__v1__job__unpack(NULL, reader.body_len, (uint8_t *)reader.body);
  cr_assert_not_null(job);
  cr_assert_str_eq(job->state, "done");
  cr_assert_not_null(job->verify);
  tracecollect__v1__job__free_unpacked(job, NULL);

  cr_assert_eq(end_job(path), 204);
  cr_assert_eq(get(path, "", ""), 404);
  EXPECT("no such job");
  cr_assert_eq(end_job(path), 404);
  cr_assert_eq(atomic_load(&server->metrics.http_jobs_left_total), 0);
}

Test(http_jobs, a_flipped_bit_is_found) {
  struct tt_writer w = write_generations(1);
  char path[200];

  tt_close(&w);
  cr_assert_eq(get("/api/v1/segments", "?settle=1", ""), 200, "%s", reader.answer);
  const char *name = strstr(reader.body, "\"path\":\"");
  cr_assert_not_null(name, "%s", reader.body);
  snprintf(path, sizeof path, "%.*s", (int)strcspn(name + 8, "\""), name + 8);
  tt_flip(&host.store, path, 4711);
  for (int tries = 0;; tries++) { /* a job skips what is too new */
    const char *job = begin_job("{}");
    wait_for_end(job);
    if (strstr(reader.body, "\"problem_count\":0,") == NULL) break;
    cr_assert_lt(tries, TT_PATIENCE_S * 10);
    cr_assert_eq(end_job(job), 204);
    usleep(20000);
  }
  EXPECT("\"problems\":[\"");
}

Test(http_jobs, one_that_fails_says_why) {
  char archive[300], away[300];

  write_generations(1);
  snprintf(archive, sizeof archive, "%s/archive", host.store.dir);
  snprintf(away, sizeof away, "%s/away", host.store.dir);
  cr_assert_eq(rename(archive, away), 0);
  wait_for_end(begin_job("{}"));
  cr_assert_eq(rename(away, archive), 0);
  EXPECT("\"state\":\"failed\",");
  EXPECT("\"error\":\"archive");
}

/* Each job checks the archive as it is when the job's own turn comes. So a second job is a separate one, with its own end. */
Test(http_jobs, a_second_one_waits_for_its_turn) {
  char first[80], second[80];

  write_generations(3);
  strcpy(first, begin_job("{}"));
  strcpy(second, begin_job("{}"));
  cr_assert_str_neq(first, second);
  cr_assert_eq(end_job(first), 204);
  wait_for_end(second);
  EXPECT("\"state\":\"done\",");
  EXPECT("\"problem_count\":0,");
  cr_assert_eq(end_job(second), 204);
}

Test(http_jobs, one_owner_has_so_many_and_all_together_have) {
  struct tt_peer_terms terms = { .ca_dir = server->host.dir, .name = "reader" };
  static const char more[] = "POST /api/v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                             "application/json\r\n\r\n";
  char first[80], address[64], said[2000];
  struct tt_peer other;
  size_t n;

  strcpy(first, begin_job("{}"));
  begin_job("{}");
  cr_assert_eq(tt_ask(&reader, "POST /api/v1/verify", "", "{}"), 429);
  EXPECT("http.owner_jobs_max is reached");
  /* Another owner may still begin a job. */
  snprintf(address, sizeof address, "127.0.0.1:%u", server->port);
  terms.address = address;
  cr_assert(tt_peer_open(&other, &terms), "%s", other.why);
  cr_assert(tt_peer_send(&other, more, sizeof more - 1), "%s", other.why);
  cr_assert_eq(SSL_read_ex(other.ssl, said, sizeof said, &n), 1);
  cr_assert_eq(strncmp(said, "HTTP/1.1 202", 12), 0, "%.*s", (int)n, said);
  tt_peer_close(&other);
  cr_assert_eq(end_job(first), 204);
  /* A cancelled job is gone as soon as its worker notices. */
  int status = 0;
  TT_WAIT_UNTIL(status == 202 ||
                (status = tt_ask(&reader, "POST /api/v1/verify", "", "{}")) == 202);
}

Test(http_jobs, an_end_that_was_told_makes_room) {
  char first[80], last[80];

  write_generations(1);
  strcpy(first, begin_job("{}"));
  wait_for_end(first);
  for (int i = 0; i < 5; i++) {
    strcpy(last, begin_job("{}"));
    wait_for_end(last);
  }
  cr_assert_eq(get(last, "", ""), 200);
  cr_assert_eq(get(first, "", ""), 404);
  begin_job("{}"); /* no reader has seen its end, even if it has ended */
  begin_job("{}");
  cr_assert_eq(tt_ask(&reader, "POST /api/v1/verify", "", "{}"), 429);
}

Test(http_jobs_left, there_are_only_so_many) {
  struct tc_http_limits limits = tt_http_limits();

  limits.owner_jobs_max = 100;
  start(&limits);
  for (int i = 0; i < 3; i++) begin_job("{}");
  cr_assert_eq(tt_ask(&reader, "POST /api/v1/verify", "", "{}"), 503);
  EXPECT("http.jobs_max is reached");
}

Test(http_jobs, what_is_no_job_is_said) {
  static const char *const paths[] = { "/api/v1/jobs/0000000000000001", "/api/v1/jobs/1",
                                       "/api/v1/jobs/", "/api/v1/jobs/000000000000000g" };

  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    cr_assert_eq(get(paths[i], "", ""), 404, "%s: %s", paths[i], reader.answer);
    cr_assert_eq(end_job(paths[i]), 404, "%s: %s", paths[i], reader.answer);
  }
  cr_assert_eq(get(begin_job("{}"), "?wait=21s", ""), 400);
  cr_assert_eq(tt_ask(&reader, "POST /api/v1/verify", "", "{\"all\":1}"), 400);
}

Test(http_jobs_left, one_that_nobody_asks_for_is_called_off_and_counted) {
  struct tc_http_limits limits = tt_http_limits();

  limits.job_expire_ms = 50;
  start(&limits);
  const char *path = begin_job("{}");
  TT_WAIT_UNTIL(atomic_load(&server->metrics.http_jobs_left_total) == 1);
  cr_assert_eq(get(path, "", ""), 404);
  EXPECT("not asked for within http.job_expire");
  cr_assert_eq(atomic_load(&server->metrics.http_client_errors_total), 1);
}

/* --- settled lists ------------------------------------------------------------------------------- */

Test(http_jobs, a_settled_list_sees_everything_acked_before_it) {
  struct tt_writer w = tt_host_writer(&host, 1, 7);
  char part[80];

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 10; gen++) {
    tt_generation(&w, gen, 3, 500);
    cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
    cr_assert_eq(get("/api/v1/segments", "?settle=1", ""), 200, "%s", reader.answer);
    snprintf(part, sizeof part, "\"last_gen\":%lu,", gen);
    EXPECT(part);
  }
}

Test(http_jobs, pages_go_on_at_next_whatever_goes) {
  char query[200] = "?limit=3";
  unsigned seen = 0;

  write_generations(10);
  cr_assert_eq(get("/api/v1/segments", "?settle=1", ""), 200, "%s", reader.answer);
  for (bool more = true; more;) {
    cr_assert_eq(get("/api/v1/segments", query, ""), 200, "%s", reader.answer);
    for (const char *at = reader.body; (at = strstr(at, "\"first_gen\":")) != NULL; at++) seen++;
    more = strstr(reader.body, "\"more\":true") != NULL;
    cr_assert_eq(strstr(reader.body, "\"streams\":[]") != NULL, strchr(query, '&') != NULL,
                 "of the first page alone: %s", reader.body);
    const char *next = strstr(reader.body, "\"next\":\"");
    cr_assert_not_null(next, "%s", reader.body);
    cr_assert_eq(next[8] == '"', !more);
    snprintf(query, sizeof query, "?limit=3&after=%.*s", (int)strcspn(next + 8, "\""), next + 8);
  }
  cr_assert_eq(seen, 10);
  cr_assert_eq(get("/api/v1/segments", "?after=07.1.1", ""), 400, "%s", reader.answer);
  cr_assert_eq(get("/api/v1/segments", "?after=07070707070707070707070707070707.1", ""), 400);
  cr_assert_eq(get("/api/v1/segments", "?after=4711", ""), 404);
}
