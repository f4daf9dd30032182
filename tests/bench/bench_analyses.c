/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what the analyses cost on top of ordering, and what publishing their reports costs.
 *
 * bench_analyses [--no-reports] TRACE...: prints for each a row "name events order_ns analyses_ns report_us KiB peak_KiB
 * thinned_ns": CPU time of one thread, the best of ROUNDS; analyses_ns an event is the difference of the two runs, thinned_ns the same if
 * all generations are thinned, report_us is for all kinds and windows, as the collector packs them after each generation. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "online/analysis/analysis.h"
#include "online/trace/reader.h"
#include "pack/report.h"

enum { ROUNDS = 5, PUBLISH_ROUNDS = 20 };
enum way { ORDER, ANALYSE, THIN, WAYS };

struct trace {
  const unsigned char *bytes;
  size_t len;
};

struct outcome {
  uint64_t events, cpu_ns, report_ns;
  size_t memory_peak, memory; /* of the analyses: while reports are made; before */
};

static uint64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static tb_rc take_none(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  (void)self;
  (void)gen;
  (void)events;
  (void)n;
  return TB_OK;
}

static tb_rc take_all(void *self, const struct to_generation *gen, const struct to_event *events,
                      size_t n) {
  return to_analyses_events(self, gen, events, n);
}

static tb_rc end_generation(void *self, const struct to_generation *gen) {
  return to_analyses_generation_ends(self, gen);
}

static tb_rc order(const struct trace *trace, struct to_event_sink sink, struct outcome *out) {
  struct to_limits limits = { 0 };
  struct to_reader *reader;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  TB_TRY(to_reader_new(&mem, &limits, TO_READER_BYTES_STAY, sink, &diag, &reader));
  if (sink.events == take_all) to_reader_on_end(reader, sink.self, end_generation);
  tb_rc rc = to_reader_read(reader, trace->bytes, trace->len);
  out->events = to_reader_events(reader);
  to_reader_free(reader);
  return rc;
}

static tb_rc publish(struct to_analyses *analyses, struct tb_mem *mem) {
  struct tp_report_about about = { .service = "bench", .instance = "1" };
  struct tb_buf buf;
  tb_rc rc = TB_OK;

  tb_buf_init(&buf, mem);
  for (unsigned w = 0; w < TO_WINDOWS && rc == TB_OK; w++)
    for (unsigned k = 0; k < TO_ANALYSIS_KINDS && rc == TB_OK; k++) {
      tb_buf_clear(&buf);
      rc = tp_report_pack(analyses, (enum to_analysis_kind)k, (enum to_window)w,
                          TP_REPORT_ROWS_LIVE, &about, &buf);
    }
  tb_buf_fini(&buf);
  return rc;
}

static int publish_rounds = PUBLISH_ROUNDS;

static tb_rc run_once(const struct trace *trace, enum way way, struct outcome *out) {
  bool analyse = way != ORDER;
  struct to_analysis_config config = { .blocked_after_ns = TO_BLOCKED_AFTER_NS_DEFAULT,
                                       .stacks_max = TO_STACKS_MAX_DEFAULT,
                                       .is_live = true };
  struct to_analyses *analyses;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  TB_TRY(to_analyses_new(&mem, &config, &analyses));
  to_analyses_thin(analyses, way == THIN);
  uint64_t start = cpu_ns();
  tb_rc rc = order(trace, (struct to_event_sink){ analyses, analyse ? take_all : take_none }, out);
  out->cpu_ns = cpu_ns() - start;
  out->memory = mem.bytes;
  start = cpu_ns();
  for (int i = 0; i < publish_rounds && rc == TB_OK && analyse; i++) rc = publish(analyses, &mem);
  out->report_ns = publish_rounds > 0 ? (cpu_ns() - start) / (unsigned)publish_rounds : 0;
  out->memory_peak = mem.bytes_peak;
  to_analyses_free(analyses);
  return rc;
}

/* Alternates the kinds of run, so that other load on the machine affects all of them. */
static tb_rc run_best(const struct trace *trace, struct outcome best[WAYS]) {
  for (unsigned round = 0; round < ROUNDS; round++)
    for (unsigned way = 0; way < WAYS; way++) {
      struct outcome got;
      TB_TRY(run_once(trace, (enum way)way, &got));
      if (round == 0 || got.cpu_ns < best[way].cpu_ns) best[way] = got;
    }
  return TB_OK;
}

static bool map_trace(const char *path, struct trace *out) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  void *bytes = MAP_FAILED;

  if (fd >= 0 && fstat(fd, &st) == 0)
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  if (fd >= 0) close(fd);
  if (bytes == MAP_FAILED) return false;
  *out = (struct trace){ bytes, (size_t)st.st_size };
  return true;
}

int main(int argc, char **argv) {
  int failed = 0;

  if (argc > 1 && strcmp(argv[1], "--no-reports") == 0) {
    publish_rounds = 0;
    argc--;
    argv++;
  }
  printf("%-24s %10s %10s %12s %10s %10s %10s %10s\n", "trace", "events", "order_ns", "analyses_ns",
         "report_us", "KiB", "peak_KiB", "thinned_ns");
  for (int i = 1; i < argc; i++) {
    struct outcome best[WAYS] = { { 0 }, { 0 } };
    const char *slash = strrchr(argv[i], '/');
    struct trace trace;
    tb_rc rc = TB_IO;

    if (map_trace(argv[i], &trace)) rc = run_best(&trace, best);
    if (rc != TB_OK) {
      fprintf(stderr, "bench_analyses: %s: %s\n", argv[i], tb_rc_text(rc));
      failed = 1;
      continue;
    }
    double n = (double)best[0].events;
    printf("%-24s %10" PRIu64 " %10.2f %12.2f %10.1f %10zu %10zu %10.2f\n",
           slash == NULL ? argv[i] : slash + 1, best[ORDER].events, (double)best[ORDER].cpu_ns / n,
           ((double)best[ANALYSE].cpu_ns - (double)best[ORDER].cpu_ns) / n,
           (double)best[ANALYSE].report_ns / 1000, best[ANALYSE].memory >> 10,
           best[ANALYSE].memory_peak >> 10,
           ((double)best[THIN].cpu_ns - (double)best[ORDER].cpu_ns) / n);
  }
  return failed;
}
