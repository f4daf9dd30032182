/* SPDX-License-Identifier: Apache-2.0 */
/* Agents for the flood tests, without the agent library: one that sends as many tiny generations as it is let, one that
 * sends a few and measures.
 *
 *     flooding_agent flood ADDRESS CERTS NAME GENERATIONS [BATCHES]    as fast as credit lets: generations of one byte, or of
 *                                                                      so many batches of 40 KiB
 *     flooding_agent pace ADDRESS CERTS NAME GENERATIONS STATE    one after the other: prints p50 and the highest times to
 *                                                                 its ack and to its file in STATE/archive, in ms
 * CERTS/NAME.pem is the certificate. flood prints how many were sent, and what the ACKs said of a hold. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "proto/frame.pb-c.h"
#include "support/patience.h"
#include "support/peer.h"

enum { CHUNK_BYTES = 48 << 10, BATCH_BYTES_MAX = 40 << 10 };

struct agent {
  struct tt_peer peer;
  unsigned char stream[16];
  uint64_t seq, sent, credit, durable;
  unsigned holds;
  unsigned char chunk[CHUNK_BYTES + 1024];
  size_t n;
};

static void must(bool done, const char *what) {
  if (done) return;
  fprintf(stderr, "flooding_agent: %s\n", what);
  exit(1);
}

static double now_ms(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void read_one(struct agent *a) {
  struct tp_frame frame;

  must(tt_peer_read_frame(&a->peer, &frame), a->peer.why);
  must(frame.kind != TP_REFUSE, "refused");
  if (frame.kind == TP_WELCOME) {
    Tracecollect__V1__Welcome *m =
        tracecollect__v1__welcome__unpack(NULL, frame.len, frame.payload);
    must(m != NULL, "WELCOME");
    a->credit = m->credit_bytes;
    tracecollect__v1__welcome__free_unpacked(m, NULL);
  }
  if (frame.kind != TP_ACK) return;
  Tracecollect__V1__Ack *m = tracecollect__v1__ack__unpack(NULL, frame.len, frame.payload);
  must(m != NULL, "ACK");
  a->credit = m->credit_bytes;
  a->durable = m->durable_seq;
  a->holds |= 1U << m->hold;
  tracecollect__v1__ack__free_unpacked(m, NULL);
}

static void flush(struct agent *a) {
  while (a->sent + a->n > a->credit) read_one(a);
  must(tt_peer_send(&a->peer, a->chunk, a->n), a->peer.why);
  a->sent += a->n;
  a->n = 0;
}

static void add(struct agent *a, enum tp_kind kind, uint64_t gen, const void *payload, size_t n) {
  struct tp_frame frame = { .kind = kind,
                            .flags = TP_CRITICAL,
                            .seq = ++a->seq,
                            .gen = gen,
                            .payload = payload,
                            .len = (uint32_t)n };

  if (a->n + TP_HEADER_BYTES + n > CHUNK_BYTES) flush(a);
  tp_frame_head(&frame, a->chunk + a->n);
  memcpy(a->chunk + a->n + TP_HEADER_BYTES, payload, n);
  a->n += TP_HEADER_BYTES + n;
}

/* Of so many batches of so many bytes, which are no events: the archive keeps them as they came. */
static void add_generation(struct agent *a, uint64_t gen, unsigned batches, unsigned bytes) {
  static const unsigned char batch[BATCH_BYTES_MAX];
  Tracecollect__V1__GenerationEnd end = TRACECOLLECT__V1__GENERATION_END__INIT;
  unsigned char buf[64], sum[4];
  uint32_t crc = tb_crc32c(0, batch, bytes);

  for (int i = 0; i < 4; i++) sum[i] = (unsigned char)(crc >> 8 * i);
  for (unsigned i = 0; i < batches; i++) {
    add(a, TP_BATCH, gen, batch, bytes);
    end.crc = tb_crc32c(end.crc, sum, 4);
  }
  end.batches = batches;
  end.bytes = (uint64_t)batches * bytes;
  add(a, TP_GENEND, gen, buf, tracecollect__v1__generation_end__pack(&end, buf));
}

static void begin(struct agent *a, char **argv) {
  struct tt_peer_terms terms = { argv[2], argv[3], NULL, argv[4], "tracecollect/1" };

  must(getrandom(a->stream, sizeof a->stream, 0) == (ssize_t)sizeof a->stream, "getrandom");
  must(tt_peer_open(&a->peer, &terms), a->peer.why);
  must(tt_peer_hello(&a->peer, a->stream, argv[1]), a->peer.why);
  while (a->credit == 0) read_one(a);
  add(a, TP_HEADER, 0, "go 1.26 trace\0\0\0", 16);
}

static void flood(struct agent *a, uint64_t generations, unsigned batches) {
  unsigned bytes = batches == 0 ? 1 : BATCH_BYTES_MAX;
  double began = now_ms();

  for (uint64_t gen = 1; gen <= generations; gen++)
    add_generation(a, gen, batches == 0 ? 1 : batches, bytes);
  flush(a);
  while (a->durable < a->seq) read_one(a);
  printf("{\"generations\":%" PRIu64 ",\"ms\":%.0f,\"holds\":%u}\n", generations, now_ms() - began,
         a->holds);
}

static int by_size(const void *x, const void *y) {
  return (*(const double *)x > *(const double *)y) - (*(const double *)x < *(const double *)y);
}

static bool is_archived(const struct agent *a, const char *state, uint64_t gen) {
  time_t now = time(NULL);
  char path[400], day[16], hex[33];

  for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", a->stream[i]);
  strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
  snprintf(path, sizeof path, "%s/archive/%s/%s/%016" PRIx64 ".trace", state, day, hex, gen);
  return access(path, F_OK) == 0;
}

static void pace(struct agent *a, uint64_t generations, const char *state) {
  double *acked = calloc(generations, sizeof *acked),
         *archived = calloc(generations, sizeof *archived);

  must(acked != NULL && archived != NULL, "memory");
  for (uint64_t gen = 1; gen <= generations; gen++) {
    double began = now_ms();
    add_generation(a, gen, 1, 1);
    flush(a);
    while (a->durable < a->seq) read_one(a);
    acked[gen - 1] = now_ms() - began;
    while (!is_archived(a, state, gen)) {
      usleep(1000);
      must(now_ms() - began < TT_PATIENCE_MS, "not archived");
    }
    archived[gen - 1] = now_ms() - began;
  }
  qsort(acked, generations, sizeof *acked, by_size);
  qsort(archived, generations, sizeof *archived, by_size);
  printf("{\"acked_p50\":%.1f,\"acked_p99\":%.1f,\"archived_p50\":%.1f,\"archived_max\":%.1f}\n",
         acked[generations / 2], acked[generations * 99 / 100], archived[generations / 2],
         archived[generations - 1]);
  free(acked);
  free(archived);
}

int main(int argc, char **argv) {
  static struct agent agent;

  if (argc < 6) return 2;
  begin(&agent, argv);
  if (strcmp(argv[1], "flood") == 0)
    flood(&agent, strtoull(argv[5], NULL, 10), argc > 6 ? (unsigned)strtoul(argv[6], NULL, 10) : 0);
  else
    pace(&agent, strtoull(argv[5], NULL, 10), argv[6]);
  tt_peer_close(&agent.peer);
  return 0;
}
