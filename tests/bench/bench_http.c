/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the CPU time that the collector's HTTP readers cost with many streams, without the
 * sockets.
 *
 * bench_http TRACE STREAMS: prints two rows "name milliseconds bytes": CPU time of one scrape of /metrics, and of one overview,
 * which all live readers share each second. The streams are in a real catalog; each has the reports of the trace, as the loops
 * publish them. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "collector/http/metrics/text.h"
#include "collector/http/overview.h"
#include "online/trace/reader.h"
#include "pack/report.h"
#include "support/archive_host.h"

enum { ROUNDS = 20, STREAMS_MAX = 255 };

static void must(bool done, const char *what) {
  if (done) return;
  fprintf(stderr, "bench_http: %s\n", what);
  exit(1);
}

static uint64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static tb_rc take_events(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  return to_analyses_events(self, gen, events, n);
}

static tb_rc end_generation(void *self, const struct to_generation *gen) {
  return to_analyses_generation_ends(self, gen);
}

static void analyse(const char *path, struct to_analyses *analyses, struct tb_mem *mem) {
  struct to_event_sink sink = { analyses, take_events };
  struct to_limits limits = { 0 };
  struct to_reader *reader;
  struct tb_diag diag;
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC);

  must(fd >= 0 && fstat(fd, &st) == 0, path);
  size_t len = (size_t)st.st_size;
  const unsigned char *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
  must(bytes != MAP_FAILED, path);
  tb_diag_clear(&diag);
  must(to_reader_new(mem, &limits, TO_READER_BYTES_STAY, sink, &diag, &reader) == TB_OK, "reader");
  to_reader_on_end(reader, analyses, end_generation);
  must(to_reader_read(reader, bytes, len) == TB_OK, diag.text);
  to_reader_free(reader);
}

/* Publishes each kind and window of one stream. */
static void publish(struct tt_host *host, struct to_analyses *analyses, struct tb_mem *mem,
                    const struct tp_report_about *about) {
  struct tb_buf buf;

  tb_buf_init(&buf, mem);
  for (unsigned w = 0; w < TO_WINDOWS; w++)
    for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
      tb_buf_clear(&buf);
      must(tp_report_pack(analyses, (enum to_analysis_kind)k, (enum to_window)w,
                          TP_REPORT_ROWS_LIVE, about, &buf) == TB_OK,
           "pack");
      struct tc_report report = { .stream = about->stream,
                                  .service = about->service,
                                  .instance = about->instance,
                                  .kind = to_analysis_name((enum to_analysis_kind)k),
                                  .window = to_window_name((enum to_window)w),
                                  .bytes = buf.data,
                                  .len = buf.len };
      must(tc_reports_publish(host->reports, &report) == TB_OK, "publish");
    }
  tb_buf_fini(&buf);
}

static void fill(struct tt_host *host, const char *trace, unsigned streams) {
  struct to_analysis_config config = { .blocked_after_ns = TO_BLOCKED_AFTER_NS_DEFAULT,
                                       .stacks_max = TO_STACKS_MAX_DEFAULT };
  struct to_analyses *analyses;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  must(to_analyses_new(&mem, &config, &analyses) == TB_OK, "analyses");
  analyse(trace, analyses, &mem);
  for (unsigned i = 1; i <= streams; i++) {
    struct tt_writer w = tt_host_writer(host, i, i);
    unsigned char stream[16];
    char instance[32];

    tt_header(&w);
    memset(stream, (int)i, sizeof stream); /* as tt_attach() does */
    snprintf(instance, sizeof instance, "host-%u", i);
    struct tp_report_about about = { .stream = stream, .service = "bench", .instance = instance };
    publish(host, analyses, &mem, &about);
  }
  tt_barrier(&host->store);
  to_analyses_free(analyses);
}

struct bench {
  struct tt_host host;
  struct tc_query_session *session;
};

static void scrape(struct bench *b, struct tb_buf *out) {
  static struct tc_metrics counts;
  struct tc_metrics *loops[] = { &counts };
  struct tc_store_stats stats = { 0 };

  must(tc_metrics_text(out, loops, 1, &stats, b->host.reports) == TB_OK, "metrics");
}

static void overview(struct bench *b, struct tb_buf *out) {
  tc_overview_write(b->session, b->host.reports, out);
  must(out->len > 0, "overview");
}

static void measure(struct bench *b, const char *name,
                    void (*one)(struct bench *b, struct tb_buf *out)) {
  uint64_t best = UINT64_MAX;
  struct tb_mem mem;
  struct tb_buf out;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&out, &mem);
  for (int i = 0; i < ROUNDS; i++) {
    tb_buf_clear(&out);
    uint64_t began = cpu_ns();
    one(b, &out);
    uint64_t took = cpu_ns() - began;
    if (took < best) best = took;
  }
  printf("%s %.2f %zu\n", name, (double)best / 1e6, out.len);
  tb_buf_fini(&out);
}

int main(int argc, char **argv) {
  unsigned streams = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
  static struct bench b;

  must(streams >= 1 && streams <= STREAMS_MAX, "bench_http TRACE STREAMS");
  tt_host_open(&b.host, 1);
  b.session = tc_query_session_new(b.host.query);
  must(b.session != NULL, "memory");
  fill(&b.host, argv[1], streams);
  measure(&b, "metrics", scrape);
  measure(&b, "overview", overview);
  tc_query_session_free(b.session);
  tt_host_close(&b.host);
  return 0;
}
