/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a start after a kill: RUNS streams, each with an open run of MB MiB in generations of 46 KB, all of them in
 * checkpoints. Prints the time from opening the store until it accepts records, until the first new record is acked,
 * and until a barrier has passed every run, each of them read back by then. Measured once with the files in the page
 * cache, once without.
 *
 * bench_start [RUNS] [MB] [FOLDER] */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "collector/store/store.h"
#include "proto/frame.pb-c.h"

enum { GENERATION_BYTES = 46000, RUNS_MAX = 4000, UNACKED_MAX = 512, LOG_FILE = 16 << 20 };

static atomic_uint refs[RUNS_MAX + 2];
static atomic_ullong acked[RUNS_MAX + 2], sent_all, acked_all;
static atomic_uint barriers;
static struct tc_store *store;
static unsigned char bytes[GENERATION_BYTES];
static uint64_t seqs[RUNS_MAX + 2], gens[RUNS_MAX + 2];

static double now_ms(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void nap(void) {
  nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
}

static bool on_reply(void *self, enum tc_from from, struct tc_reply *reply) {
  (void)self;
  (void)from;
  if (reply->kind == TC_REPLY_ATTACHED) {
    seqs[reply->conn] = reply->seq;
    refs[reply->conn] = reply->stream;
  } else if (reply->kind == TC_REPLY_ACKED) {
    acked_all += reply->seq - acked[reply->conn];
    acked[reply->conn] = reply->seq;
  } else if (reply->kind == TC_REPLY_BARRIER) {
    barriers++;
  } else if (reply->kind == TC_REPLY_REFUSED || reply->kind == TC_REPLY_FAILED) {
    fprintf(stderr, "bench_start: %s\n", reply->text);
    _exit(1);
  }
  tc_reply_free(reply);
  return true;
}

static void free_record(struct tc_record *record) {
  free(record);
}

static void submit(struct tc_submit *msg) {
  while (!tc_store_submit(store, 0, msg)) nap();
}

static void attach(unsigned i) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_ATTACH);

  msg->conn = i;
  memset(msg->attach.stream, 1, TC_STREAM_BYTES);
  memcpy(msg->attach.stream, &i, sizeof i);
  strcpy(msg->attach.identity, "tracecollect:agent/bench");
  strcpy(msg->attach.service, "bench");
  strcpy(msg->attach.instance, "i");
  submit(msg);
  while (refs[i] == 0) nap();
  acked[i] = seqs[i];
}

static void put(unsigned i, unsigned kind, const void *payload, size_t len) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_RECORD);
  struct tc_record *record = malloc(sizeof *record + len);

  *record = (struct tc_record){ .free = free_record,
                                .magic = TC_RECORD_MAGIC,
                                .conn = i,
                                .seq = ++seqs[i],
                                .gen = gens[i],
                                .stream = refs[i],
                                .len = (uint32_t)len,
                                .crc = tb_crc32c(0, payload, len),
                                .kind = (uint8_t)kind };
  memcpy(record->payload, payload, len);
  msg->conn = i;
  msg->record = record;
  while (sent_all - acked_all > UNACKED_MAX) nap();
  sent_all++;
  submit(msg);
}

static void put_generation(unsigned i, size_t len) {
  Tracecollect__V1__GenerationEnd end = TRACECOLLECT__V1__GENERATION_END__INIT;
  unsigned char packed[64];
  uint32_t crc = tb_crc32c(0, bytes, len);

  gens[i]++;
  put(i, TP_BATCH, bytes, len);
  end.batches = 1;
  end.bytes = len;
  end.crc = tb_crc32c(0, &crc, 4);
  put(i, TP_GENEND, packed, tracecollect__v1__generation_end__pack(&end, packed));
}

static bool open_store(const struct tc_config *config) {
  struct tc_store_sink sink = { NULL, on_reply, NULL };
  struct tb_diag diag = { 0 };

  if (tc_store_open(config, 1, sink, &diag, &store) == TB_OK) return true;
  fprintf(stderr, "bench_start: %s\n", diag.text);
  return false;
}

static unsigned log_files(const char *dir) {
  char path[300];
  unsigned n = 0;

  snprintf(path, sizeof path, "%s/wal", dir);
  DIR *wal = opendir(path);
  if (wal == NULL) exit(1);
  for (struct dirent *entry; (entry = readdir(wal)) != NULL;) n += entry->d_name[0] != '.';
  closedir(wal);
  return n;
}

/* Runs in the child, which exits once the log has released all runs. */
_Noreturn static void write_runs(const struct tc_config *config, unsigned runs, unsigned each) {
  if (!open_store(config)) _exit(1);
  for (unsigned i = 1; i <= runs + 1; i++) {
    attach(i);
    put(i, TP_HEADER, "go 1.26 trace\0\0\0", 16);
  }
  for (unsigned n = 0; n < each; n++)
    for (unsigned i = 1; i <= runs; i++) put_generation(i, sizeof bytes);
  do {
    for (unsigned n = 0; n < 200; n++) put_generation(runs + 1, 1000);
    while (sent_all != acked_all) nap();
  } while (log_files(config->top_state) > config->log_checkpoint_bytes / LOG_FILE + 2);
  kill(getpid(), SIGKILL);
  _exit(1);
}

static void leave_page_cache(const char *dir) {
  char path[600];

  snprintf(path, sizeof path, "%s/open", dir);
  DIR *open_dir = opendir(path);
  if (open_dir == NULL) exit(1);
  for (struct dirent *entry; (entry = readdir(open_dir)) != NULL;) {
    int fd = openat(dirfd(open_dir), entry->d_name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    (void)fdatasync(fd);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
  }
  closedir(open_dir);
}

/* Runs in a child, so that it can be killed and repeated. */
_Noreturn static void time_start(const struct tc_config *config, const char *words, unsigned runs) {
  double began = now_ms();

  if (!open_store(config)) _exit(1);
  double ready = now_ms() - began;
  attach(runs + 2);
  put(runs + 2, TP_HEADER, "go 1.26 trace\0\0\0", 16);
  while (acked[runs + 2] < seqs[runs + 2]) nap();
  double ack = now_ms() - began;
  submit(tc_submit_new(TC_SUBMIT_BARRIER));
  while (barriers == 0) nap();
  printf("%s\tready\t%.0f\tms\n%s\tacked\t%.0f\tms\n%s\tproven\t%.0f\tms\n", words, ready, words,
         ack, words, now_ms() - began);
  fflush(stdout);
  kill(getpid(), SIGKILL);
  _exit(1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}

static void wait_for(pid_t child) {
  int status;

  if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) exit(1);
}

int main(int argc, char **argv) {
  unsigned runs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 500;
  unsigned mb = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4;
  struct rlimit files;
  struct tc_config config;
  char dir[256];

  if (runs == 0 || runs > RUNS_MAX || mb == 0) {
    fprintf(stderr, "usage: bench_start [RUNS] [MB] [FOLDER]\n");
    return 2;
  }
  snprintf(dir, sizeof dir, "%s/bench-start-XXXXXX", argc > 3 ? argv[3] : "/tmp");
  if (mkdtemp(dir) == NULL || getrlimit(RLIMIT_NOFILE, &files) != 0) return 1;
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) return 1;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 11);
  tc_config_init(&config);
  free(config.top_state);
  config.top_state = strdup(dir);
  config.retention_free_bytes = config.disk_free_min = 0;
  config.segment_bytes_max = UINT64_C(1) << 40;
  config.segment_generations_max = 1 << 20;
  config.segment_seconds_max = UINT64_C(86400000000000);
  config.log_file_bytes = LOG_FILE;
  config.log_checkpoint_bytes = 4 * LOG_FILE;
  pid_t child = fork();
  if (child == 0) write_runs(&config, runs, mb * (1 << 20) / GENERATION_BYTES);
  wait_for(child);
  for (int cold = 0; cold < 2; cold++) {
    if (cold) leave_page_cache(dir);
    child = fork();
    if (child == 0) time_start(&config, cold ? "cold" : "warm", runs);
    wait_for(child);
  }
  tc_config_fini(&config);
  nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  return 0;
}
