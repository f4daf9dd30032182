/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the cost of storing: CPU of the store's two threads per MB, and wall MB/s from submit to the last ack and
 * seal. The floor beside it is plain pwrite + fdatasync of the same bytes in the same run, to one file; the store
 * writes them twice, to the log and to the segment. Last, the time of a start with all of these bytes still in the log,
 * because the first stream has not ended its generation.
 *
 * bench_store [MB] [BATCH_BYTES] [STREAMS] [FOLDER] */
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "collector/store/store.h"
#include "proto/frame.pb-c.h"

enum { GENERATION_BYTES = 4 << 20, WINDOW_BYTES = 4 << 20, STREAMS_MAX = 256 };

struct bench {
  struct tc_store *store;
  atomic_uint refs[STREAMS_MAX + 1];
  atomic_ullong acked[STREAMS_MAX + 1], released[STREAMS_MAX + 1];
  atomic_bool barrier;
};

static uint64_t wall_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static double cpu_ms(int who) {
  struct rusage use;

  getrusage(who, &use);
  return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
         (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

static void nap(void) {
  nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
}

static bool on_reply(void *self, enum tc_from from, struct tc_reply *reply) {
  struct bench *bench = self;

  (void)from;
  if (reply->kind == TC_REPLY_ATTACHED) bench->refs[reply->conn - 1] = reply->stream;
  if (reply->kind == TC_REPLY_ACKED) bench->acked[reply->conn - 1] = reply->seq;
  if (reply->kind == TC_REPLY_RELEASED) bench->released[reply->conn - 1] += reply->released;
  if (reply->kind == TC_REPLY_BARRIER) bench->barrier = true;
  if (reply->kind == TC_REPLY_REFUSED || reply->kind == TC_REPLY_FAILED) {
    fprintf(stderr, "bench_store: %s\n", reply->text);
    _exit(1);
  }
  tc_reply_free(reply);
  return true;
}

static void free_record(struct tc_record *record) {
  free(record);
}

struct writer {
  uint64_t seq, gen, sent, gen_bytes, gen_batches;
  uint32_t crc;
};

static void submit(struct bench *bench, struct tc_submit *msg) {
  while (!tc_store_submit(bench->store, 0, msg)) nap();
}

static void put(struct bench *bench, struct writer *w, unsigned stream, unsigned kind,
                const void *bytes, size_t len) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_RECORD);
  struct tc_record *record = malloc(sizeof *record + len);

  *record = (struct tc_record){ .free = free_record,
                                .magic = TC_RECORD_MAGIC,
                                .conn = stream + 1,
                                .seq = ++w->seq,
                                .gen = w->gen,
                                .stream = bench->refs[stream],
                                .len = (uint32_t)len,
                                .crc = tb_crc32c(0, bytes, len),
                                .kind = (uint8_t)kind };
  memcpy(record->payload, bytes, len);
  msg->conn = stream + 1;
  msg->record = record;
  w->sent += len + TP_HEADER_BYTES;
  submit(bench, msg);
}

static void put_end(struct bench *bench, struct writer *w, unsigned stream) {
  Tracecollect__V1__GenerationEnd end = TRACECOLLECT__V1__GENERATION_END__INIT;
  unsigned char buf[64];

  end.batches = w->gen_batches;
  end.bytes = w->gen_bytes;
  end.crc = w->crc;
  put(bench, w, stream, TP_GENEND, buf, tracecollect__v1__generation_end__pack(&end, buf));
  w->gen++;
  w->gen_bytes = w->gen_batches = 0;
  w->crc = 0;
}

static void write_all(struct bench *bench, const unsigned char *bytes, uint64_t total, size_t batch,
                      unsigned streams) {
  struct writer *w = calloc(streams, sizeof *w);
  uint32_t crc = tb_crc32c(0, bytes, batch);

  for (unsigned i = 0; i < streams; i++) {
    put(bench, &w[i], i, TP_HEADER, "go 1.26 trace\0\0\0", 16);
    w[i].gen = 1;
  }
  for (uint64_t done = 0; done < total;) {
    bool idle = true;
    for (unsigned i = 0; i < streams && done < total; i++) {
      if (w[i].sent - bench->released[i] > WINDOW_BYTES) continue;
      put(bench, &w[i], i, TP_BATCH, bytes, batch);
      w[i].crc = tb_crc32c(w[i].crc, &crc, 4);
      w[i].gen_bytes += batch;
      w[i].gen_batches++;
      if (w[i].gen_bytes >= GENERATION_BYTES) put_end(bench, &w[i], i);
      done += batch;
      idle = false;
    }
    if (idle) nap();
  }
  for (unsigned i = 0; i < streams; i++)
    if (w[i].gen_batches > 0) put_end(bench, &w[i], i);
  for (unsigned i = 0; i < streams; i++)
    while (bench->acked[i] < w[i].seq) nap();
  free(w);
}

/* Writes one batch of a generation that does not end, so that the log is kept from here on. */
static void hold_log(struct bench *bench, unsigned stream, const unsigned char *bytes, size_t len) {
  struct writer w = { .gen = 1 };

  put(bench, &w, stream, TP_BATCH, bytes, len);
  while (bench->acked[stream] < w.seq) nap();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}

static void plain(const char *dir, const unsigned char *bytes, uint64_t total, size_t batch,
                  double *out_ms, double *out_s) {
  char path[300];
  uint64_t began = wall_ns();
  double cpu = cpu_ms(RUSAGE_SELF);

  snprintf(path, sizeof path, "%s/plain", dir);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (fd < 0) exit(1);
  for (uint64_t at = 0, synced = 0; at < total; at += batch) {
    if (pwrite(fd, bytes, batch, (off_t)at) != (ssize_t)batch) exit(1);
    if (at - synced >= 1 << 20 && fdatasync(fd) == 0) synced = at;
  }
  if (fdatasync(fd) != 0) exit(1);
  close(fd);
  *out_ms = cpu_ms(RUSAGE_SELF) - cpu;
  *out_s = (double)(wall_ns() - began) / 1e9;
  unlink(path);
}

int main(int argc, char **argv) {
  uint64_t mb = argc > 1 ? strtoull(argv[1], NULL, 10) : 256;
  size_t batch = argc > 2 ? strtoull(argv[2], NULL, 10) : 64 << 10;
  unsigned streams = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 4;
  char dir[256];
  static struct bench bench;
  struct tc_config config;
  struct tb_diag diag = { 0 };
  double plain_ms, plain_s;

  if (mb == 0 || batch == 0 || batch > TP_RECORD_BYTES_MAX || streams == 0 ||
      streams > STREAMS_MAX) {
    fprintf(stderr, "usage: bench_store [MB] [BATCH_BYTES] [STREAMS] [FOLDER]\n");
    return 2;
  }
  snprintf(dir, sizeof dir, "%s/bench-store-XXXXXX", argc > 4 ? argv[4] : "/tmp");
  if (mkdtemp(dir) == NULL) return 1;
  unsigned char *bytes = malloc(batch);
  for (size_t i = 0; i < batch; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 11);
  plain(dir, bytes, mb << 20, batch, &plain_ms, &plain_s);

  tc_config_init(&config);
  free(config.top_state);
  config.top_state = strdup(dir);
  config.retention_free_bytes = config.disk_free_min = 0;
  struct tc_store_sink sink = { &bench, on_reply, NULL };
  if (tc_store_open(&config, 1, sink, &diag, &bench.store) != TB_OK) {
    fprintf(stderr, "bench_store: %s\n", diag.text);
    return 1;
  }
  for (unsigned i = 0; i <= streams; i++) {
    struct tc_submit *msg = tc_submit_new(TC_SUBMIT_ATTACH);
    msg->conn = i + 1;
    memset(msg->attach.stream, (int)i + 1, TC_STREAM_BYTES);
    strcpy(msg->attach.service, "bench");
    strcpy(msg->attach.instance, "i");
    submit(&bench, msg);
    while (bench.refs[i] == 0) nap();
  }
  hold_log(&bench, streams, bytes, batch);
  uint64_t began = wall_ns();
  double cpu = cpu_ms(RUSAGE_SELF) - cpu_ms(RUSAGE_THREAD);
  write_all(&bench, bytes, mb << 20, batch, streams);
  struct tc_submit *barrier = tc_submit_new(TC_SUBMIT_BARRIER);
  submit(&bench, barrier);
  while (!bench.barrier) nap();
  double ms = cpu_ms(RUSAGE_SELF) - cpu_ms(RUSAGE_THREAD) - cpu,
         s = (double)(wall_ns() - began) / 1e9;
  struct tc_store_stats stats;
  tc_store_stats(bench.store, &stats);
  printf("store  %5zu B x %u streams: %.3f ms/MB CPU, %.0f MB/s; %llu commits, %.2f ms each, %llu "
         "segments\n",
         batch, streams, ms / (double)mb, (double)mb / s, (unsigned long long)stats.commits,
         (double)stats.commit_ns_total / 1e6 / (double)stats.commits,
         (unsigned long long)stats.segments_sealed);
  printf("plain  pwrite + fdatasync each 1 MiB, once: %.3f ms/MB CPU, %.0f MB/s\n",
         plain_ms / (double)mb, (double)mb / plain_s);
  tc_store_close(bench.store);
  began = wall_ns();
  if (tc_store_open(&config, 1, sink, &diag, &bench.store) != TB_OK) return 1;
  printf("start  with %llu MB in the log: %.0f ms\n", (unsigned long long)(stats.log_bytes >> 20),
         (double)(wall_ns() - began) / 1e6);
  tc_store_close(bench.store);
  tc_config_fini(&config);
  free(bytes);
  nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  return 0;
}
