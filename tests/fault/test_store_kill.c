/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 of a process that runs the store, at random moments, recovery included (reliability.md, rows 1
 * and 2): what it had acked is there after the next start, once, byte for byte.
 *
 * The child writes streams whose record n is given by n alone, so each child goes on where the store says
 * the one before was. Acks go to the parent through a pipe before the next record leaves. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "collector/catalog.h"
#include "proto/frame.pb-c.h"
#include "support/store_fixture.h"

enum { STREAMS = 4, UNACKED_MAX = 40, KILLS = 120 };
#define BATCHES 7u

struct ack {
  uint32_t stream;
  uint32_t attached; /* 1: the store says on attach that it is durable up to seq */
  uint64_t seq;
};

struct child {
  int pipe;
  struct tc_store *store;
  atomic_uint refs[STREAMS]; /* 0: not attached yet */
  atomic_ullong acked[STREAMS];
  atomic_bool failed;
};

static size_t batch_bytes(uint64_t gen, unsigned position) {
  return 1 + (gen * 7919 + position * 104729) % 9000;
}

static void fill(unsigned char *out, unsigned stream, uint64_t gen, unsigned position) {
  tt_fill(out, batch_bytes(gen, position), gen + 1000003 * stream, position);
}

static size_t generation_end(unsigned char *out, unsigned stream, uint64_t gen) {
  Tracecollect__V1__GenerationEnd end = TRACECOLLECT__V1__GENERATION_END__INIT;
  unsigned char batch[9001];

  for (unsigned i = 0; i < BATCHES; i++) {
    size_t len = batch_bytes(gen, i);
    fill(batch, stream, gen, i);
    uint32_t crc = tb_crc32c(0, batch, len); /* the machine is little endian, as the protocol */
    end.crc = tb_crc32c(end.crc, &crc, 4);
    end.bytes += len;
    end.batches++;
  }
  return tracecollect__v1__generation_end__pack(&end, out);
}

static void free_record(struct tc_record *record) {
  free(record);
}

static struct tc_submit *record_of(struct child *child, unsigned stream, uint64_t seq) {
  unsigned char payload[9001];
  size_t len = 16;
  uint64_t gen = seq == 1 ? 0 : (seq - 2) / (BATCHES + 1) + 1;
  unsigned position = (unsigned)((seq - 2) % (BATCHES + 1)), kind = TP_HEADER;

  memcpy(payload, "go 1.26 trace\0\0\0", 16);
  if (seq > 1 && position < BATCHES) {
    kind = TP_BATCH;
    len = batch_bytes(gen, position);
    fill(payload, stream, gen, position);
  } else if (seq > 1) {
    kind = TP_GENEND;
    len = generation_end(payload, stream, gen);
  }
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_RECORD);
  struct tc_record *record = malloc(sizeof *record + len);
  *record = (struct tc_record){ .free = free_record,
                                .conn = stream + 1,
                                .seq = seq,
                                .gen = gen,
                                .stream = child->refs[stream],
                                .len = (uint32_t)len,
                                .crc = tb_crc32c(0, payload, len),
                                .kind = (uint8_t)kind };
  memcpy(record->payload, payload, len);
  msg->conn = stream + 1;
  msg->record = record;
  return msg;
}

static bool on_reply(void *self, enum tc_from from, struct tc_reply *reply) {
  struct child *child = self;

  (void)from;
  if (reply->kind == TC_REPLY_ATTACHED || reply->kind == TC_REPLY_ACKED) {
    unsigned stream = (unsigned)reply->conn - 1;
    struct ack ack = { stream, reply->kind == TC_REPLY_ATTACHED, reply->seq };
    if (write(child->pipe, &ack, sizeof ack) != (ssize_t)sizeof ack) _exit(3);
    child->acked[stream] = reply->seq;
    if (ack.attached) child->refs[stream] = reply->stream;
  }
  if (reply->kind == TC_REPLY_REFUSED || reply->kind == TC_REPLY_FAILED) {
    fprintf(stderr, "child: %s\n", reply->text);
    child->failed = true;
  }
  tc_reply_free(reply);
  return true;
}

static void nap(void) {
  nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

/* Writes until killed, or until each stream has `stop_seq` acked: then ends as a daemon does. */
static void run_child(struct tt_store *t, int pipe, uint64_t stop_seq) {
  static struct child child;
  struct tb_diag diag = { 0 };
  uint64_t next[STREAMS];

  child.pipe = pipe;
  struct tc_store_sink sink = { &child, on_reply, NULL };
  if (tc_store_open(&t->config, 1, sink, &diag, &child.store) != TB_OK) {
    fprintf(stderr, "child: %s\n", diag.text);
    _exit(2);
  }
  for (unsigned i = 0; i < STREAMS; i++) {
    struct tc_submit *msg = tc_submit_new(TC_SUBMIT_ATTACH);
    msg->conn = i + 1;
    memset(msg->attach.stream, (int)i + 1, TC_STREAM_BYTES);
    strcpy(msg->attach.identity, "tracecollect:agent/a");
    strcpy(msg->attach.service, "kill");
    strcpy(msg->attach.instance, "i");
    while (!tc_store_submit(child.store, 0, msg)) nap();
    while (child.refs[i] == 0 && !child.failed) nap();
    next[i] = child.acked[i] + 1;
  }
  for (unsigned done = 0; done < STREAMS && !child.failed;) {
    bool idle = true;
    done = 0;
    for (unsigned i = 0; i < STREAMS; i++) {
      done += child.acked[i] >= stop_seq;
      if (next[i] > child.acked[i] + UNACKED_MAX || next[i] > stop_seq) continue;
      struct tc_submit *msg = record_of(&child, i, next[i]);
      if (!tc_store_submit(child.store, 0, msg)) {
        tc_submit_free(msg);
        continue;
      }
      next[i]++;
      idle = false;
    }
    if (idle) nap();
  }
  tc_store_close(child.store);
  _exit(child.failed ? 4 : 0);
}

static uint64_t mono_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Reads acks until the child is to die or has ended; checks that no start knows less than was acked. */
static void follow(int fd, uint64_t until_ns, uint64_t acked[STREAMS]) {
  for (;;) {
    struct ack ack;
    uint64_t now = mono_ns();
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    int wait_ms = until_ns == 0     ? 10000
                  : now >= until_ns ? 0
                                    : (int)((until_ns - now) / 1000000) + 1;
    if (poll(&pfd, 1, wait_ms) == 0) return;
    if (read(fd, &ack, sizeof ack) != (ssize_t)sizeof ack) return;
    if (ack.attached)
      cr_assert_geq(ack.seq, acked[ack.stream],
                    "stream %u: %" PRIu64 " was acked, the next start knows %" PRIu64, ack.stream,
                    acked[ack.stream], ack.seq);
    if (ack.seq > acked[ack.stream]) acked[ack.stream] = ack.seq;
    if (until_ns != 0 && mono_ns() >= until_ns) return;
  }
}

struct expected {
  struct tt_store *t;
  uint64_t next_gen[STREAMS];
};

static tb_rc expect_segment(void *self, const struct tc_segment_row *row) {
  struct expected *expected = self;
  unsigned stream = row->stream[0] - 1;
  unsigned char batch[9001];
  size_t len, at = 16;

  cr_assert_eq(row->first_gen, expected->next_gen[stream] + 1,
               "stream %u: a generation is missing or twice", stream);
  expected->next_gen[stream] = row->last_gen;
  char *bytes = tt_read_file(expected->t, row->path, &len);
  cr_assert_not_null(bytes);
  for (uint64_t gen = row->first_gen; gen <= row->last_gen; gen++)
    for (unsigned i = 0; i < BATCHES; i++) {
      fill(batch, stream, gen, i);
      cr_assert_leq(at + batch_bytes(gen, i), len);
      cr_assert_eq(memcmp(bytes + at, batch, batch_bytes(gen, i)), 0);
      at += batch_bytes(gen, i);
    }
  cr_assert_eq(at, len);
  free(bytes);
  return TB_OK;
}

static void expect_archive(struct tt_store *t, const uint64_t acked[STREAMS]) {
  struct expected expected = { .t = t };
  struct tc_select all = { .limit = 1000000 };
  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog;
  int fd = open(t->dir, O_RDONLY | O_DIRECTORY);

  cr_assert_eq(tc_catalog_open(fd, false, &diag, &catalog), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_catalog_segments(catalog, &all, expect_segment, &expected, &diag), TB_OK);
  tc_catalog_close(catalog);
  close(fd);
  for (unsigned i = 0; i < STREAMS; i++)
    cr_assert_eq(expected.next_gen[i], (acked[i] - 1) / (BATCHES + 1));
  cr_assert_eq(tt_count_files(t, "quarantine", ""), 0);
  tt_expect_proven(t);
}

static void kill_many(const char *sync, unsigned generations_max) {
  static struct tt_store t;
  uint64_t acked[STREAMS] = { 0 };
  int fds[2];
  unsigned seed = 12345 + generations_max;

  tt_store_make(&t);
  t.config.log_file_bytes = 1 << 20;
  t.config.log_group_bytes = 64 << 10;
  t.config.segment_generations_max = generations_max;
  free(t.config.top_sync);
  t.config.top_sync = strdup(sync);
  for (unsigned kill_no = 0; kill_no <= KILLS; kill_no++) {
    bool last = kill_no == KILLS;
    uint64_t stop = last ? acked[0] : UINT64_MAX;
    for (int i = 0; i < STREAMS; i++)
      if (last && acked[i] + 100 > stop) stop = acked[i] + 100;
    if (last)
      stop = 1 + ((stop - 1) / (BATCHES + 1) + 1) * (BATCHES + 1); /* ends with a generation */
    cr_assert_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
      close(fds[0]);
      run_child(&t, fds[1], stop);
    }
    close(fds[1]);
    /* From the first steps of recovery to some hundred groups later. */
    uint64_t delay = kill_no % 3 == 0 ? (uint64_t)(rand_r(&seed) % 5000000)
                                      : (uint64_t)(rand_r(&seed) % 120000000);
    follow(fds[0], last ? 0 : mono_ns() + delay + 1, acked);
    int status;
    if (!last) kill(pid, SIGKILL);
    follow(fds[0], 0, acked); /* what it had said before it died */
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    close(fds[0]);
    if (WIFEXITED(status))
      cr_assert_eq(WEXITSTATUS(status), 0, "child %u ended with %d", kill_no, WEXITSTATUS(status));
  }
  expect_archive(&t, acked);
  fprintf(stderr, "%u kills, acked up to %" PRIu64 "\n", KILLS, acked[0]);
  tt_store_remove(&t);
}

Test(store_kill, no_acked_record_is_lost_or_doubled) {
  kill_many("durable", 1);
}

Test(store_kill, nor_at_level_process) {
  kill_many("process", 1);
}

Test(store_kill, nor_where_files_hold_several_generations) {
  kill_many("durable", 5);
}
