/* SPDX-License-Identifier: Apache-2.0 */
/* A traced program for the fault tests. The seed determines its trace.
 *
 *     seeded_agent send ADDRESS CERTS INSTANCE SEED GENERATION_BYTES MB_S SPOOL_BYTES [SPOOL_DIR]
 *     seeded_agent write SEED GENERATION_BYTES
 *     seeded_agent check SEED GENERATION_BYTES FILE...
 *
 * send writes generation after generation at that rate until SIGTERM, then waits for the acks (support/patience.h). After
 * SIGUSR1 it stops in the middle of the next generation, until SIGUSR2. It prints "held" when the half that is written, and all
 * before it, is acked. Ten times a second, and at the end, it prints the agent's status as one line of JSON. With SPOOL_DIR it
 * calls ta_forward_sync() after each generation; "safe" is the last generation that no kill can lose, according to this call.
 * Exit 0: all is acked, and SPOOL_DIR has nothing left of earlier programs. write writes the header and one generation after
 * the other to stdout, until the reader stops, each after its length (4 bytes, little endian). This is for agents in other
 * languages (agent/go/seeded_test.go). check reads traces as they come out of the archive: each must be whole generations of
 * that seed in rising order. It prints "FIRST LAST BATCHES BYTES" for each file. Exit 1: the bytes are not those that were
 * written. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "seeded_trace.h"
#include "support/patience.h"
#include "traceagent.h"
#include "wire/batch.h"

#define CLOSE_NS ((uint64_t)TT_PATIENCE_MS * 970000) /* a little less than who waits for it */
enum { REPORT_EVERY_NS = 100000000, SYNC_MS = 20 };

static volatile sig_atomic_t stop, hold;
static bool held;

static void on_signal(int signal) {
  if (signal == SIGTERM)
    stop = 1;
  else
    hold = signal == SIGUSR1;
}

static uint64_t now_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t safe; /* generations */

static void report(ta_forward *f, uint64_t generations) {
  struct ta_forward_status s = { .size = sizeof s };

  if (ta_forward_status(f, &s) != TA_OK) return;
  for (char *c = s.last_error; *c != 0; c++)
    if (*c == '"' || *c == '\\') *c = '\''; /* for JSON */
  printf("{\"stream\":\"%s\",\"state\":%d,\"generations\":%" PRIu64 ",\"produced_batches\":%" PRIu64
         ",\"produced_bytes\":%" PRIu64 ",\"acked_batches\":%" PRIu64 ",\"acked_bytes\":%" PRIu64
         ",\"acked_generations\":%" PRIu64 ",\"lost_batches\":%" PRIu64 ",\"lost_bytes\":%" PRIu64
         ",\"lost_generations\":%" PRIu64 ",\"reconnects\":%" PRIu64 ",\"resent_batches\":%" PRIu64
         ",\"begun_anew\":%" PRIu64 ",\"faults\":%" PRIu64 ",\"safe\":%" PRIu64
         ",\"disk_faults\":%" PRIu64 ",\"old_streams\":%" PRIu64 ",\"old_streams_sent\":%" PRIu64
         ",\"held\":%d,\"slowed\":%d,\"last_error\":\"%s\"}\n",
         s.stream, (int)s.state, generations, s.produced_batches, s.produced_bytes, s.acked_batches,
         s.acked_bytes, s.acked_generations, s.lost_batches, s.lost_bytes, s.lost_generations,
         s.reconnects, s.resent_batches, s.begun_anew, s.faults, safe, s.disk_faults, s.old_streams,
         s.old_streams_sent, held, strncmp(s.last_error, "collector slows", 15) == 0, s.last_error);
  fflush(stdout);
}

/* Sleeps until the moment, with reports in between; SIGTERM ends the sleep. */
static void rest_until(ta_forward *f, uint64_t moment_ns, uint64_t *report_ns, uint64_t gen) {
  while (!stop) {
    uint64_t now = now_ns(), next = moment_ns < *report_ns ? moment_ns : *report_ns;
    if (now >= *report_ns) {
      report(f, gen);
      *report_ns = now + REPORT_EVERY_NS;
      continue;
    }
    if (now >= moment_ns) return;
    struct timespec ts = { .tv_sec = (time_t)(next / 1000000000),
                           .tv_nsec = (long)(next % 1000000000) };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
  }
}

/* Syncs, and reports this at once, because the program may be killed at any moment. Synced data must not be lost then. */
static void make_safe(ta_forward *f, uint64_t gen) {
  int said = ta_forward_sync(f, SYNC_MS);

  if (said != TA_OK && said != TA_E_KEPT) return;
  safe = gen;
  report(f, gen);
}

static void wait_for_acks(ta_forward *f, uint64_t gen) {
  while (!stop && ta_forward_sync(f, REPORT_EVERY_NS / 1000000) == TA_E_TIMEOUT) report(f, gen);
}

/* Waits for the acks first: nothing else may remain in the spool that could be evicted instead of
 * the half that is held. */
static void write_in_halves(ta_forward *f, const unsigned char *bytes, size_t n, uint64_t gen) {
  wait_for_acks(f, gen);
  ta_forward_write(f, bytes, n / 2);
  wait_for_acks(f, gen);
  held = true;
  while (hold && !stop) {
    report(f, gen);
    usleep(REPORT_EVERY_NS / 1000);
  }
  held = false;
  ta_forward_write(f, bytes + n / 2, n - n / 2);
}

static bool old_ones_left(ta_forward *f) {
  struct ta_forward_status s = { .size = sizeof s };

  return ta_forward_status(f, &s) == TA_OK && s.old_streams > 0;
}

static int send_all(char **argv) {
  struct tt_seeded trace = { .seed = strtoull(argv[3], NULL, 10),
                             .generation_bytes = (unsigned)strtoul(argv[4], NULL, 10) };
  double bytes_ns = strtod(argv[5], NULL) / 1000;
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = argv[0],
                                      .certs = argv[1],
                                      .service = "fault",
                                      .instance = argv[2],
                                      .spool_bytes = strtoull(argv[6], NULL, 10),
                                      .spool_dir = argv[7] };
  struct ta_forward_status last = { .size = sizeof last };
  unsigned char *bytes = malloc(tt_seeded_room(&trace));
  ta_forward *f;

  if (bytes == NULL || ta_forward_open(&config, &f) != TA_OK) return 3;
  uint64_t start = now_ns(), report_ns = start, gen = 0, written = 0, batches;
  ta_forward_write(f, bytes, tt_seeded_header(bytes));
  while (!stop) {
    size_t n = tt_seeded_generation(&trace, ++gen, bytes, &batches);
    uint64_t began = now_ns();
    if (hold) {
      write_in_halves(f, bytes, n, gen);
      start += now_ns() - began; /* at its rate afterwards */
    } else {
      ta_forward_write(f, bytes, n);
    }
    written += n;
    if (config.spool_dir != NULL) make_safe(f, gen);
    rest_until(f, start + (uint64_t)((double)written / bytes_ns), &report_ns, gen);
  }
  ta_forward_finish(f);
  for (uint64_t end = now_ns() + CLOSE_NS; now_ns() < end;) {
    int said = ta_forward_sync(f, 100);
    if (said != TA_E_TIMEOUT && said != TA_E_KEPT) {
      if (!old_ones_left(f)) break;
      usleep(100000); /* they come on another thread */
    }
    report(f, gen);
  }
  report(f, gen);
  if (ta_forward_status(f, &last) == TA_OK && last.state == TA_STATE_REFUSED)
    fprintf(stderr, "%s\n", last.last_error);
  free(bytes);
  return ta_forward_close(f, 0) == TA_OK ? 0 : 1;
}

static bool write_part(const unsigned char *bytes, size_t n) {
  uint32_t length = htole32((uint32_t)n);

  return fwrite(&length, 1, sizeof length, stdout) == sizeof length &&
         fwrite(bytes, 1, n, stdout) == n;
}

static int write_all(char **argv) {
  struct tt_seeded trace = { .seed = strtoull(argv[0], NULL, 10),
                             .generation_bytes = (unsigned)strtoul(argv[1], NULL, 10) };
  unsigned char *bytes = malloc(tt_seeded_room(&trace));
  uint64_t batches;

  if (bytes == NULL) return 3;
  signal(SIGPIPE, SIG_IGN);
  size_t n = tt_seeded_header(bytes);
  for (uint64_t gen = 1; write_part(bytes, n); gen++)
    n = tt_seeded_generation(&trace, gen, bytes, &batches);
  free(bytes);
  return errno == EPIPE ? 0 : 1;
}

/* Returns the whole file; release with free(). */
static unsigned char *read_file(const char *path, size_t *out_n) {
  FILE *file = fopen(path, "rb");
  long n;

  if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (n = ftell(file)) < 0) return NULL;
  rewind(file);
  unsigned char *bytes = malloc((size_t)n + 1);
  *out_n = bytes == NULL ? 0 : fread(bytes, 1, (size_t)n, file);
  fclose(file);
  return bytes;
}

static int check_file(const struct tt_seeded *trace, const char *path, unsigned char *room) {
  uint64_t first = 0, last = 0, batches = 0, more;
  size_t n, at = 16, used;
  unsigned char *bytes = read_file(path, &n);
  int rc = 0;

  if (bytes == NULL || n < at) {
    fprintf(stderr, "%s: %s\n", path, bytes == NULL ? strerror(errno) : "is too short");
    free(bytes);
    return 1;
  }
  tt_seeded_header(room);
  if (memcmp(bytes, room, 16) != 0) rc = 1;
  while (rc == 0 && at < n) {
    struct tb_diag diag = { 0 };
    struct tw_batch batch;
    size_t len = 0;
    if (tw_batch_read(bytes + at, n - at, &diag, &batch, &used) == TB_OK && batch.gen > last)
      len = tt_seeded_generation(trace, batch.gen, room, &more);
    if (len == 0 || len > n - at || memcmp(bytes + at, room, len) != 0) {
      rc = 1;
      break;
    }
    if (first == 0) first = batch.gen;
    last = batch.gen;
    batches += more;
    at += len;
  }
  if (rc != 0)
    fprintf(stderr, "%s: byte %zu, behind generation %" PRIu64 ": is not what was written\n", path,
            at, last);
  printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %zu\n", first, last, batches, n - 16);
  free(bytes);
  return rc;
}

static int check_all(int n, char **argv) {
  struct tt_seeded trace = { .seed = strtoull(argv[0], NULL, 10),
                             .generation_bytes = (unsigned)strtoul(argv[1], NULL, 10) };
  unsigned char *room = malloc(tt_seeded_room(&trace));
  int rc = room == NULL;

  for (int i = 2; i < n && room != NULL; i++) rc |= check_file(&trace, argv[i], room);
  free(room);
  return rc;
}

int main(int argc, char **argv) {
  struct sigaction act = { .sa_handler = on_signal };

  sigaction(SIGTERM, &act, NULL);
  sigaction(SIGUSR1, &act, NULL);
  sigaction(SIGUSR2, &act, NULL);
  if ((argc == 9 || argc == 10) && strcmp(argv[1], "send") == 0) return send_all(argv + 2);
  if (argc == 4 && strcmp(argv[1], "write") == 0) return write_all(argv + 2);
  if (argc >= 4 && strcmp(argv[1], "check") == 0) return check_all(argc - 2, argv + 2);
  fprintf(stderr,
          "usage: seeded_agent send ADDRESS CERTS INSTANCE SEED GENERATION_BYTES MB_S SPOOL_BYTES "
          "[SPOOL_DIR]\n"
          "       seeded_agent write SEED GENERATION_BYTES\n"
          "       seeded_agent check SEED GENERATION_BYTES FILE...\n");
  return 2;
}
