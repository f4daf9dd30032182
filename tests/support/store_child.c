/* SPDX-License-Identifier: Apache-2.0 */
#include "support/store_child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "archive/catalog/catalog.h"
#include "base/crc32c.h"
#include "proto/frame.pb-c.h"

enum { UNACKED_MAX = 40 };

struct ack {
  uint32_t stream;
  uint32_t attached; /* 1: the store says on attach that it is durable up to seq */
  uint64_t seq;
};

struct child {
  int pipe;
  struct tc_store *store;
  atomic_uint refs[TT_CHILD_STREAMS]; /* 0: not attached yet */
  atomic_ullong acked[TT_CHILD_STREAMS];
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

  for (unsigned i = 0; i < TT_CHILD_BATCHES; i++) {
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
  uint64_t gen = seq == 1 ? 0 : (seq - 2) / ((uint64_t)TT_CHILD_BATCHES + 1) + 1;
  unsigned position = (unsigned)((seq - 2) % ((uint64_t)TT_CHILD_BATCHES + 1)), kind = TP_HEADER;

  memcpy(payload, "go 1.26 trace\0\0\0", 16);
  if (seq > 1 && position < TT_CHILD_BATCHES) {
    kind = TP_BATCH;
    len = batch_bytes(gen, position);
    fill(payload, stream, gen, position);
  } else if (seq > 1) {
    kind = TP_GENEND;
    len = generation_end(payload, stream, gen);
  }
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_RECORD);
  struct tc_record *record = msg == NULL ? NULL : malloc(sizeof *record + len);
  if (record == NULL) { /* memory may come back */
    tc_submit_free(msg);
    return NULL;
  }
  *record = (struct tc_record){ .free = free_record,
                                .magic = TC_RECORD_MAGIC,
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

void tt_child_run(struct tt_store *t, int pipe, uint64_t stop_seq) {
  static struct child child;
  struct tb_diag diag = { 0 };
  uint64_t next[TT_CHILD_STREAMS];

  child.pipe = pipe;
  struct tc_store_sink sink = { &child, on_reply, NULL };
  if (tc_store_open(&t->config, 1, sink, &diag, &child.store) != TB_OK) {
    fprintf(stderr, "child: %s\n", diag.text);
    _exit(TT_CHILD_NO_START);
  }
  for (unsigned i = 0; i < TT_CHILD_STREAMS; i++) {
    struct tc_submit *msg;
    while ((msg = tc_submit_new(TC_SUBMIT_ATTACH)) == NULL) nap();
    msg->conn = i + 1;
    memset(msg->attach.stream, (int)i + 1, TC_STREAM_BYTES);
    strcpy(msg->attach.identity, "tracecollect:agent/a");
    strcpy(msg->attach.service, "kill");
    strcpy(msg->attach.instance, "i");
    while (!tc_store_submit(child.store, 0, msg)) nap();
    while (child.refs[i] == 0 && !child.failed) nap();
    next[i] = child.acked[i] + 1;
  }
  for (unsigned done = 0; done < TT_CHILD_STREAMS && !child.failed;) {
    bool idle = true;
    done = 0;
    for (unsigned i = 0; i < TT_CHILD_STREAMS; i++) {
      done += child.acked[i] >= stop_seq;
      if (next[i] > child.acked[i] + UNACKED_MAX || next[i] > stop_seq) continue;
      struct tc_submit *msg = record_of(&child, i, next[i]);
      if (msg == NULL || !tc_store_submit(child.store, 0, msg)) {
        tc_submit_free(msg);
        continue;
      }
      next[i]++;
      idle = false;
    }
    if (idle) nap();
  }
  tc_store_close(child.store);
  _exit(child.failed ? TT_CHILD_REFUSED : TT_CHILD_DONE);
}

uint64_t tt_mono_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

bool tt_child_follow(int fd, uint64_t until_ns, int silent_s, uint64_t acked[TT_CHILD_STREAMS]) {
  for (;;) {
    struct ack ack;
    uint64_t now = tt_mono_ns();
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    int wait_ms = until_ns == 0     ? 1000 * silent_s
                  : now >= until_ns ? 0
                                    : (int)((until_ns - now) / 1000000) + 1;
    if (poll(&pfd, 1, wait_ms) == 0) return until_ns != 0;
    if (read(fd, &ack, sizeof ack) != (ssize_t)sizeof ack) return true;
    if (ack.attached)
      cr_assert_geq(ack.seq, acked[ack.stream],
                    "stream %u: %" PRIu64 " was acked, the next start knows %" PRIu64, ack.stream,
                    acked[ack.stream], ack.seq);
    if (ack.seq > acked[ack.stream]) acked[ack.stream] = ack.seq;
    if (until_ns != 0 && tt_mono_ns() >= until_ns) return true;
  }
}

uint64_t tt_child_border(uint64_t seq) {
  return 1 + ((seq - 1) / ((uint64_t)TT_CHILD_BATCHES + 1) + 1) * ((uint64_t)TT_CHILD_BATCHES + 1);
}

struct expected {
  struct tt_store *t;
  const char *what;
  uint64_t next_gen[TT_CHILD_STREAMS];
};

static tb_rc expect_segment(void *self, const struct tc_segment_row *row) {
  struct expected *expected = self;
  unsigned stream = row->stream[0] - 1;
  unsigned char batch[9001];
  size_t len, at = 16;

  cr_assert_eq(row->first_gen, expected->next_gen[stream] + 1,
               "%s: stream %u: generation %" PRIu64 " comes after %" PRIu64, expected->what, stream,
               row->first_gen, expected->next_gen[stream]);
  expected->next_gen[stream] = row->last_gen;
  char *bytes = tt_read_file(expected->t, row->path, &len);
  cr_assert_not_null(bytes);
  for (uint64_t gen = row->first_gen; gen <= row->last_gen; gen++)
    for (unsigned i = 0; i < TT_CHILD_BATCHES; i++) {
      fill(batch, stream, gen, i);
      cr_assert_leq(at + batch_bytes(gen, i), len);
      cr_assert_eq(memcmp(bytes + at, batch, batch_bytes(gen, i)), 0);
      at += batch_bytes(gen, i);
    }
  cr_assert_eq(at, len);
  free(bytes);
  return TB_OK;
}

void tt_child_expect(struct tt_store *t, const uint64_t acked[TT_CHILD_STREAMS], const char *what) {
  struct expected expected = { .t = t, .what = what };
  struct tc_select all = { .limit = 1000000 };
  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog;
  int fd = open(t->dir, O_RDONLY | O_DIRECTORY);

  cr_assert_eq(tc_catalog_open(fd, false, &diag, &catalog), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_catalog_segments(catalog, &all, expect_segment, &expected, &diag), TB_OK);
  tc_catalog_close(catalog);
  close(fd);
  for (unsigned i = 0; i < TT_CHILD_STREAMS; i++)
    cr_assert_eq(expected.next_gen[i], (acked[i] - 1) / ((uint64_t)TT_CHILD_BATCHES + 1),
                 "%s: stream %u: the last generation is %" PRIu64, what, i, expected.next_gen[i]);
  cr_assert_eq(tt_count_files(t, "quarantine", ""), 0, "%s: something is in quarantine", what);
  tt_expect_proven(t);
}
