/* SPDX-License-Identifier: Apache-2.0 */
/* `tracectl fetch` itself, as a user runs it, over HTTP with a real store behind it. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/meta.pb-c.h"
#include "support/archive_host.h"
#include "support/caller.h"
#include "support/http_server.h"
#include "wire/batch.h"

enum { BATCHES = 4, BATCH_BYTES = 1000, HEADER_BYTES = 16 };

static struct tt_host host;
static struct tt_http *server;
static char folder[64], said[8192];

static void ask_at(const char *path) {
  char where[128];

  snprintf(where, sizeof where, "unix:%s", path);
  setenv("TRACECTL_SERVER", where, 1);
}

static void open_with(unsigned generations_max) {
  strcpy(folder, "/tmp/tk_fetch_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  cr_assert_eq(chdir(folder), 0);
  tt_host_open(&host, generations_max);
  server = tt_http_start("", NULL, host.query);
  ask_at(server->path);
  setenv("TRACECTL_CONFIG", "/dev/null", 1);
}

static void open_host(void) {
  open_with(1);
}

static void close_host(void) {
  char command[96];

  tt_http_stop(server);
  tt_host_close(&host);
  cr_assert_eq(chdir("/"), 0);
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(fetch, .init = open_host, .fini = close_host);

/* Runs tracectl with these words. Returns its exit code, and keeps its stderr in `said`. */
__attribute__((format(printf, 1, 2))) static int run(const char *fmt, ...) {
  char words[512], command[1024];
  va_list args;

  va_start(args, fmt);
  vsnprintf(words, sizeof words, fmt, args);
  va_end(args);
  snprintf(command, sizeof command, "%s/bin/tracectl %s 2>said", getenv("TC_BINARY_DIR"), words);
  int status = system(command);
  FILE *f = fopen("said", "r");
  said[fread(said, 1, sizeof said - 1, f)] = '\0';
  fclose(f);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool has_said(const char *words) {
  return strstr(said, words) != NULL;
}

/* Expects the file to be the header and these generations, as tt_generation() wrote them. */
static void expect_file(const char *name, uint64_t first, uint64_t last) {
  static unsigned char got[1 << 20], want[BATCH_BYTES];
  FILE *f = fopen(name, "r");

  cr_assert_not_null(f, "line %d: %s: %s", tt_caller, name, said);
  size_t n = fread(got, 1, sizeof got, f);
  fclose(f);
  cr_assert_eq(n, HEADER_BYTES + (last - first + 1) * BATCHES * BATCH_BYTES,
               "line %d: %s: %zu bytes", tt_caller, name, n);
  cr_assert_eq(memcmp(got, "go 1.26 trace\0\0\0", HEADER_BYTES), 0, TT_CALLER);
  const unsigned char *at = got + HEADER_BYTES;
  for (uint64_t gen = first; gen <= last; gen++)
    for (unsigned i = 0; i < BATCHES; i++, at += BATCH_BYTES) {
      tt_fill(want, sizeof want, gen, i);
      cr_assert_eq(memcmp(at, want, sizeof want), 0, "line %d: %s: generation %lu, batch %u",
                   tt_caller, name, gen, i);
    }
}
#define expect_file(...) TT_CALL(expect_file(__VA_ARGS__))

static struct tt_writer write_generations(unsigned id, uint64_t first, uint64_t last) {
  struct tt_writer w = tt_host_writer(&host, id, id);

  tt_header(&w);
  for (uint64_t gen = first; gen <= last; gen++) tt_generation(&w, gen, BATCHES, BATCH_BYTES);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  return w;
}

Test(fetch, joined_segments_are_what_the_program_wrote) {
  struct stat st;

  write_generations(7, 1, 6);
  umask(022);
  cr_assert_eq(run("fetch --service shop -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 6);
  cr_assert_eq(stat("t.trace", &st), 0);
  cr_assert_eq(st.st_mode & 0777, 0644);
  cr_assert_eq(run("fetch --gen 3..4 -o t.trace"), 0, "%s", said); /* replaced */
  expect_file("t.trace", 3, 4);
  cr_assert_eq(run("fetch --gen 5.. -o - > out.trace"), 0, "%s", said);
  expect_file("out.trace", 5, 6);
}

Test(fetch, a_closed_streams_last_generation_is_seen_at_once) {
  struct tt_writer w = write_generations(7, 1, 2);

  tt_close(&w);
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 2);
}

Test(fetch, a_hole_begins_a_second_file) {
  struct tt_writer w = write_generations(7, 1, 2);

  tt_loss(&w, 3, 4, 10, 1000);
  tt_generation(&w, 5, BATCHES, BATCH_BYTES);
  tt_generation(&w, 6, BATCHES, BATCH_BYTES);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  cr_assert(
      has_said(
          "generations 3..4 are missing: the agent's spool was full: raise spool_bytes, or look at "
          "network and collector; what follows is in t.trace.2"),
      "%s", said);
  expect_file("t.trace", 1, 2);
  expect_file("t.trace.2", 5, 6);
  cr_assert_eq(run("status | grep -q '^lost by .*: raise spool_bytes'"), 0, "%s", said);
  cr_assert_eq(run("fetch --strict -o t.trace"), 4, "%s", said);
  cr_assert_eq(run("fetch --strict --gen 5..6 -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 5, 6);
  cr_assert_eq(run("fetch -o - >/dev/null"), 1);
  cr_assert(has_said("a hole comes before generation 5"), "%s", said);
  cr_assert_eq(run("fetch --strict --gen 5..9 -o t.trace"), 4, "%s", said);
  cr_assert(has_said("generations 7..9 are missing: not in the archive"), "%s", said);
}

Test(fetch, several_live_streams_are_listed_and_one_must_be_chosen) {
  write_generations(7, 1, 1);
  write_generations(8, 1, 2);
  cr_assert_eq(run("fetch --service shop -o t.trace"), 2);
  cr_assert(has_said("2 live streams match"), "%s", said);
  cr_assert(
      has_said(
          "  tracectl fetch --service shop -o t.trace --stream 08080808  # shop/host-8, live, "),
      "%s", said);
  cr_assert_neq(access("t.trace", F_OK), 0);
  cr_assert_eq(run("fetch --instance host-8 -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 2);
  cr_assert_not(has_said("streams match"), "%s", said);
  cr_assert_eq(run("fetch --stream 07070707070707070707070707070707 -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 1);
  cr_assert_eq(run("fetch --stream 080 -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 2);
  cr_assert_eq(run("fetch --stream 0 -o t.trace"), 2);
  cr_assert(has_said("2 streams begin with 0: 07070707 (shop/host-7), 08080808 (shop/host-8)"),
            "%s", said);
  cr_assert_eq(run("fetch --stream 0 --instance host-8 -o t.trace"), 0, "%s", said);
  cr_assert_eq(run("fetch --stream 9 -o t.trace"), 1);
  cr_assert(has_said("no stream's id begins with 9"), "%s", said);
  cr_assert_eq(run("fetch --stream o7 -o t.trace"), 2);
  cr_assert(has_said("--stream needs a stream's id, or its first digits"), "%s", said);
  cr_assert_eq(run("status | grep -q 'host-8 *08080808 '"), 0, "%s", said);
  cr_assert_eq(run("fetch --instance host8 -o t.trace"), 1);
  cr_assert(has_said("no instance \"host8\"; did you mean \"host-8\"?"), "%s", said);
  cr_assert_eq(run("list --service shpo"), 1);
  cr_assert(has_said("no service \"shpo\"; did you mean \"shop\"?"), "%s", said);
  cr_assert_eq(run("list --service shop --gen 99.."), 0, "%s", said);
}

static void end_stream(struct tt_writer *w) {
  tt_close(w);
  tt_detach(&host.store, w->conn);
}

/* A service was restarted: the streams of its earlier processes match, too. */
Test(fetch, of_several_streams_the_live_one_is_taken_else_the_newest) {
  struct tt_writer first = write_generations(9, 1, 1);

  end_stream(&first);
  struct tt_writer last = write_generations(7, 1, 2);
  struct tt_writer silent = tt_host_writer(&host, 8, 8);
  tt_header(&silent); /* live, but without anything to fetch */
  cr_assert(tt_wait_acked(&host.store, silent.stream, silent.seq));
  cr_assert_eq(run("fetch --service shop --last 3s -o t.trace"), 0, "%s", said);
  cr_assert(has_said("3 streams match, this is the live one: shop/host-7, --stream 07070707"), "%s",
            said);
  expect_file("t.trace", 1, 2);
  end_stream(&last);
  end_stream(&silent);
  cr_assert_eq(run("fetch --service shop -o t.trace"), 0, "%s", said);
  cr_assert(has_said("3 streams match, this is the newest, none is live: shop/host-7"), "%s", said);
  expect_file("t.trace", 1, 2);
}

Test(fetch, a_broken_generation_is_named_and_may_end_its_file) {
  struct tt_writer w = write_generations(7, 1, 4);
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_VERDICT);

  tt_barrier(&host.store);
  msg->verdict = (struct tc_verdict){ .stream = w.stream,
                                      .gen = 2,
                                      .code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN,
                                      .thread = 5,
                                      .offset = 99 };
  snprintf(msg->verdict.reason, sizeof msg->verdict.reason, "goroutine 3 started twice");
  tt_submit(&host.store, msg);
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  cr_assert(has_said("generation 2 is broken as written: goroutine 3 started twice; Go's tools end "
                     "there, --split begins another file after it"),
            "%s", said);
  expect_file("t.trace", 1, 4);
  cr_assert_eq(run("fetch --split -o t.trace"), 0, "%s", said);
  cr_assert(has_said("generation 2 is broken as written: goroutine 3 started twice; what follows "
                     "is in t.trace.2"),
            "%s", said);
  expect_file("t.trace", 1, 2);
  expect_file("t.trace.2", 3, 4);
  cr_assert_eq(run("fetch --split -o - >/dev/null"), 1);
  cr_assert(has_said("a broken generation comes before generation 3"), "%s", said);
  cr_assert_eq(run("fetch --gen 1..2 -o t.trace"), 0, "%s", said);
  cr_assert(has_said("goroutine 3 started twice\n"), "%s", said);
  expect_file("t.trace", 1, 2);
}

Test(fetch, experiments_go_cannot_read_are_left_out_unless_full) {
  struct tt_writer w = tt_host_writer(&host, 7, 7);
  struct tw_batch batch = { .gen = 1, .thread = 3, .time = 10, .len = 5 };
  unsigned char bytes[64], all[200];
  size_t n[3], used = 0;

  tt_header(&w);
  for (int i = 0; i < 3; i++) { /* ordinary, experiment 1 (AllocFree), experiment 2 */
    batch.experiment = (uint8_t)i;
    n[i] = tw_batch_write_header(bytes, &batch);
    memset(bytes + n[i], 'a' + i, 5);
    n[i] += 5;
    memcpy(all + used, bytes, n[i]);
    used += n[i];
    tt_batch(&w, 1, bytes, n[i]);
  }
  tt_end(&w, 1);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));

  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  cr_assert(has_said("1 batches"), "%s", said);
  FILE *f = fopen("t.trace", "r");
  unsigned char got[300];
  cr_assert_eq(fread(got, 1, sizeof got, f), HEADER_BYTES + n[0] + n[1]);
  fclose(f);
  cr_assert_eq(memcmp(got + HEADER_BYTES, all, n[0] + n[1]), 0);

  cr_assert_eq(run("fetch --full -o t.trace"), 0, "%s", said);
  cr_assert_not(has_said("left out"), "%s", said);
  f = fopen("t.trace", "r");
  cr_assert_eq(fread(got, 1, sizeof got, f), HEADER_BYTES + used);
  fclose(f);
  cr_assert_eq(memcmp(got + HEADER_BYTES, all, used), 0);
}

static void flip_in(const char *trace, uint64_t offset) {
  char path[300];

  snprintf(path, sizeof path, "cd %s && find archive open -name '%s' > %s/found", host.store.dir,
           trace, folder);
  cr_assert_eq(system(path), 0);
  FILE *f = fopen("found", "r");
  cr_assert_not_null(fgets(path, sizeof path, f));
  fclose(f);
  path[strcspn(path, "\n")] = '\0';
  tt_flip(&host.store, path, offset);
}

Test(fetch, rotten_bytes_are_no_trace) {
  struct tt_writer w = write_generations(7, 1, 2);

  tt_close(&w);
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  flip_in("*2.trace", 500);
  cr_assert_eq(unlink("t.trace"), 0);
  cr_assert_eq(run("fetch -o t.trace"), 1);
  cr_assert(has_said("segment 2: its bytes no longer match their XXH3-128"), "%s", said);
  cr_assert_neq(access("t.trace", F_OK), 0);
  cr_assert_neq(system("ls *.part-* >/dev/null 2>&1"), 0); /* no half-written file stays */
}

Test(fetch, wrong_use_is_told_and_exits_2) {
  write_generations(7, 1, 1);
  cr_assert_eq(run("fetch"), 2);
  cr_assert(has_said("-o FILE is required"), "%s", said);
  cr_assert_eq(run("fetch 1 --service shop -o t.trace"), 2);
  cr_assert_eq(run("fetch --gen 3..1 -o t.trace"), 2);
  cr_assert_eq(run("fetch --since yesterday -o t.trace"), 2);
  cr_assert_eq(run("fetch --json -o -"), 2);
  cr_assert_eq(run("fetch --bogus"), 2);
  cr_assert_eq(run("fetch --service none -o t.trace"), 1);
  cr_assert(has_said("no service \"none\"; known services: shop"), "%s", said);
  cr_assert_eq(run("fetch 4711 -o t.trace"), 1);
  cr_assert_eq(run("fetch -o /nonexistent/t.trace"), 1);
  cr_assert(has_said("/nonexistent/t.trace: No such file or directory"), "%s", said);
}

/* --- files of several generations -------------------------------------------------------------- */

static void open_joined(void) {
  open_with(100);
}

TestSuite(fetch_joined, .init = open_joined, .fini = close_host);

enum { IN_GENERATION_5 = HEADER_BYTES + 4 * BATCHES * BATCH_BYTES + 3 };

static void expect_rotten_5(void) {
  cr_assert_eq(run("fetch -o t.trace"), 1);
  cr_assert(has_said("segment 1: generation 5's bytes no longer match their XXH3-128; `tracectl "
                     "verify` says more"),
            "%s", said);
  cr_assert_eq(run("fetch --gen 5..5 -o t.trace"), 1);
  cr_assert(has_said("generation 5's bytes no longer match"), "%s", said);
  cr_assert_eq(run("fetch --gen 1..4 -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 4);
  cr_assert_eq(run("fetch --gen 6..6 -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 6, 6);
}

Test(fetch_joined, a_rotten_generation_is_named_and_the_others_are_given) {
  struct tt_writer w = write_generations(7, 1, 9);

  tt_close(&w);
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 9);
  flip_in("*.trace", IN_GENERATION_5);
  expect_rotten_5();
}

Test(fetch_joined, a_generation_of_a_run_that_is_written_has_its_hash) {
  write_generations(7, 1, 9);
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  flip_in("*.part", IN_GENERATION_5);
  expect_rotten_5();
}

Test(fetch_joined, generations_are_cut_out_of_a_longer_file) {
  write_generations(7, 1, 9);
  cr_assert_eq(run("list --json > segments"), 0, "%s", said);
  cr_assert_eq(run("fetch --gen 4..6 -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 4, 6);
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 9);
  cr_assert_eq(run("fetch 1 -o t.trace"), 0, "%s", said);
}

Test(fetch_joined, what_is_open_is_seen_and_goes_on) {
  struct tt_writer w = write_generations(7, 1, 3);

  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 3);
  tt_generation(&w, 4, BATCHES, BATCH_BYTES);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 4);
}

Test(fetch_joined, status_counts_what_is_still_written_as_list_does) {
  write_generations(7, 1, 3);
  cr_assert_eq(run("list --json | grep -q '\"bytes\":12016,.*\"open\":true'"), 0, "%s", said);
  cr_assert_eq(run("status --json | grep -q '\"open_bytes\":12016,\"open_segments\":1'"), 0, "%s",
               said);
  cr_assert_eq(run("status | grep -q '^archive: 0 B in 0 segments and 11.7 KiB in 1 still being "
                   "written, '"),
               0, "%s", said);
}

/* --- a connection that is cut ------------------------------------------------------------------ */

/* A proxy that passes requests and answers on, and ends each connection after `bytes` bytes of answers. */
static struct {
  int door;
  pthread_t thread;
  size_t bytes;
  atomic_uint cuts;
} cutter;

/* Returns false if one end has closed, or if enough has been answered. */
static bool pass_on(struct pollfd ends[2], size_t *left) {
  char bytes[4096];

  if (poll(ends, 2, -1) < 0) return false;
  for (int i = 0; i < 2; i++) {
    if (ends[i].revents == 0) continue;
    bool is_answer = i == 1;
    size_t most = is_answer && *left < sizeof bytes ? *left : sizeof bytes;
    ssize_t n = recv(ends[i].fd, bytes, most, 0);
    if (n <= 0 || send(ends[1 - i].fd, bytes, (size_t)n, MSG_NOSIGNAL) != n) return false;
    if (!is_answer) continue;
    *left -= (size_t)n;
    if (*left > 0) continue;
    cutter.cuts++;
    return false;
  }
  return true;
}

static void *serve_cuts(void *self) {
  for (int fd; (fd = accept(cutter.door, NULL, NULL)) >= 0; close(fd)) {
    struct pollfd ends[2] = { { fd, POLLIN, 0 }, { tt_http_dial_path(server), POLLIN, 0 } };
    size_t left = cutter.bytes;
    while (pass_on(ends, &left)) continue;
    close(ends[1].fd);
  }
  return self;
}

/* The connection is cut in the head of the list, or in each of sixteen parts of the file. */
Test(fetch_joined, what_is_cut_goes_on_where_it_was) {
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  struct tt_writer w = write_generations(7, 1, 9);
  size_t file_bytes = HEADER_BYTES + 9 * BATCHES * BATCH_BYTES;

  tt_close(&w);
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  snprintf(at.sun_path, sizeof at.sun_path, "%s/cut.sock", folder);
  cutter.door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  cr_assert_eq(bind(cutter.door, (struct sockaddr *)&at, sizeof at), 0);
  cr_assert_eq(listen(cutter.door, 8), 0);
  cutter.bytes = 4000 + file_bytes / 16; /* a list fits; heads take about 600 */
  cr_assert_eq(pthread_create(&cutter.thread, NULL, serve_cuts, NULL), 0);
  ask_at(at.sun_path);
  cr_assert_eq(run("fetch -o t.trace"), 0, "%s", said);
  expect_file("t.trace", 1, 9);
  cr_assert_geq(cutter.cuts, 6);
  shutdown(cutter.door, SHUT_RDWR);
  pthread_join(cutter.thread, NULL);
  close(cutter.door);
}
