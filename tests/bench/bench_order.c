/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and orders traces in memory into a sink that counts, and prints the cost of an event.
 *
 *   bench_order [-n ROUNDS] [--analyses | --spans | --states | --ahead] FILE...
 *
 * --spans: makes and counts spans of every kind but threads. --states: only those of runnable and waiting goroutines.
 * --ahead: the time for the file if another core prepared each generation while the one before is ordered, one
 * generation ahead. That time is computed from the CPU time of either half, so that a busy machine does not affect it.
 *
 * One line a file, tab-separated: file, events, ns an event, events/s, MB/s, peak of the reader's own
 * memory and the largest generation, both in MB. CPU time of this process, best of ROUNDS. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "online/analysis/analysis.h"
#include "online/spans/spans.h"
#include "online/trace/prepare.h"
#include "online/trace/reader.h"
#include "wire/split.h"

struct file {
  const char *path;
  const unsigned char *bytes;
  size_t len;
};

enum what { WHOLE, ANALYSES, SPANS, STATES, AHEAD };

struct bench {
  uint64_t events;
  int64_t took_ns;
  struct to_analyses *analyses; /* both NULL: count only */
  struct to_spans *spans;
  uint64_t spans_ns; /* sum of their lengths, so that each span is read */
};

static int64_t cpu_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static tb_rc take(void *self, const struct to_generation *gen, const struct to_event *events,
                  size_t n) {
  struct bench *bench = self;

  bench->events += n;
  if (bench->spans != NULL) return to_spans_events(bench->spans, gen, events, n);
  return bench->analyses == NULL ? TB_OK : to_analyses_events(bench->analyses, gen, events, n);
}

static tb_rc count_spans(void *self, const struct to_generation *gen, const struct to_span *spans,
                         size_t n) {
  struct bench *bench = self;

  (void)gen;
  for (size_t i = 0; i < n; i++) bench->spans_ns += (uint64_t)(spans[i].until - spans[i].from);
  return TB_OK;
}

static tb_rc on_end(void *self, const struct to_generation *gen) {
  struct bench *bench = self;
  return bench->spans != NULL ? to_spans_generation_ends(bench->spans, gen)
                              : to_analyses_generation_ends(bench->analyses, gen);
}

static tb_rc make_spans(struct bench *bench, enum what what, struct tb_mem *mem) {
  struct to_spans_config config = { .wanted = what == STATES
                                                  ? TO_WANT_GO(RUNNABLE) | TO_WANT_GO(WAITING)
                                                  : TO_WANT_ALL & ~TO_WANT(THREAD) };

  return to_spans_new(mem, &config, (struct to_span_sink){ bench, count_spans }, &bench->spans);
}

/* Times at which either core is done with its work, each starting at 0. A generation is prepared in one of two places,
 * which must be free: the last but one must be ordered. */
struct cores {
  int64_t prepared, ordered[2];
};

static tb_rc prepare_one(struct to_prepare *prepare, struct to_prepared *p, const struct file *file,
                         size_t *pos) {
  size_t used;

  tb_rc rc = to_prepare_begin(prepare, p);
  while (rc == TB_OK && *pos < file->len) {
    rc = to_prepare_feed(prepare, file->bytes + *pos, file->len - *pos, &used);
    *pos += used;
  }
  return rc == TB_OK ? to_prepare_finish(prepare) : rc;
}

static tb_rc order_ahead(struct to_reader *reader, struct to_prepare *prepare,
                         struct to_prepared *places[2], const struct file *file, int64_t *out_ns) {
  struct cores cores = { 0 };
  size_t pos = 0;
  tb_rc rc = TB_OK;
  bool last = false;

  for (unsigned i = 0; rc == TB_OK && !last; i = 1 - i) {
    int64_t start = cpu_ns(), *before = &cores.ordered[i], *ordered = &cores.ordered[1 - i];
    if (prepare_one(prepare, places[i], file, &pos) != TB_AGAIN) return TB_BROKEN;
    last = to_prepared_is_last(places[i]);
    int64_t between = cpu_ns();
    rc = to_reader_adopt(reader, places[i]);
    while (rc == TB_AGAIN) rc = to_reader_run(reader, 4096);
    if (cores.prepared < *before) cores.prepared = *before;
    cores.prepared += between - start;
    *before = (*ordered > cores.prepared ? *ordered : cores.prepared) + (cpu_ns() - between);
    *out_ns = *before;
  }
  return rc;
}

static tb_rc order_all_ahead(struct to_reader *reader, const struct file *file, struct tb_mem *mem,
                             int64_t *out_ns) {
  struct to_prepared *places[2] = { NULL, NULL };
  struct to_prepare *prepare = NULL;

  tb_rc rc = to_prepare_new(mem, NULL, TO_READER_BYTES_STAY, &prepare);
  for (int i = 0; i < 2 && rc == TB_OK; i++) rc = to_prepared_new(mem, &places[i]);
  if (rc == TB_OK) rc = order_ahead(reader, prepare, places, file, out_ns);
  to_prepared_free(places[0]);
  to_prepared_free(places[1]);
  to_prepare_free(prepare);
  return rc;
}

static tb_rc run_once(const struct file *file, enum what what, struct bench *bench, size_t *memory,
                      struct tb_diag *diag) {
  static const struct to_analysis_config config = { .blocked_after_ns = 10000000,
                                                    .stacks_max = 1000 };
  struct to_event_sink sink = { bench, take };
  struct to_reader *reader = NULL;
  struct tb_mem mem;
  int64_t start = cpu_ns();
  tb_rc rc = TB_OK;

  *bench = (struct bench){ 0 };
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(diag);
  if (what == ANALYSES) rc = to_analyses_new(&mem, &config, &bench->analyses);
  if (what == SPANS || what == STATES) rc = make_spans(bench, what, &mem);
  if (rc == TB_OK) rc = to_reader_new(&mem, NULL, TO_READER_BYTES_STAY, sink, diag, &reader);
  if (rc == TB_OK && (bench->spans != NULL || bench->analyses != NULL))
    to_reader_on_end(reader, bench, on_end);
  if (rc == TB_OK && what == AHEAD)
    rc = order_all_ahead(reader, file, &mem, &bench->took_ns);
  else if (rc == TB_OK)
    rc = to_reader_read(reader, file->bytes, file->len);
  to_reader_free(reader);
  to_analyses_free(bench->analyses);
  to_spans_free(bench->spans);
  if (what != AHEAD) bench->took_ns = cpu_ns() - start;
  *memory = mem.bytes_peak;
  return rc;
}

/* Returns the bytes of the largest generation's batches, their headers included. */
static uint64_t largest_generation(const struct file *file) {
  uint64_t gen = 0, bytes = 0, largest = 0;
  struct tw_split split;
  struct tw_item item;
  struct tb_mem mem;
  size_t pos = 0, used;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tw_split_init(&split, &mem);
  while (tw_split_feed(&split, file->bytes + pos, file->len - pos, &used, &item) == TB_OK) {
    pos += used;
    if (item.kind == TW_ITEM_BATCH && item.batch.gen != gen) bytes = 0, gen = item.batch.gen;
    bytes += item.len;
    if (item.kind == TW_ITEM_BATCH && bytes > largest) largest = bytes;
  }
  tw_split_fini(&split);
  return largest;
}

static bool bench_file(const struct file *file, int rounds, enum what what) {
  int64_t best = INT64_MAX;
  struct tb_diag diag;
  struct bench bench;
  size_t memory = 0;

  for (int i = 0; i < rounds; i++) {
    tb_rc rc = run_once(file, what, &bench, &memory, &diag);
    if (rc != TB_OK) {
      fprintf(stderr, "bench_order: %s: %s %s\n", file->path, tb_rc_name(rc), diag.text);
      return false;
    }
    if (bench.took_ns < best) best = bench.took_ns;
  }
  const char *name = strrchr(file->path, '/');
  double s = (double)best / 1e9, events = (double)bench.events;
  printf("%s\t%" PRIu64 "\t%.2f\t%.0f\t%.1f\t%.1f\t%.1f\n", name == NULL ? file->path : name + 1,
         bench.events, (double)best / events, events / s, (double)file->len / s / 1e6,
         (double)memory / 1e6, (double)largest_generation(file) / 1e6);
  fflush(stdout);
  return true;
}

static bool map_file(const char *path, struct file *out) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC);

  if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0) return false;
  void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return false;
  *out = (struct file){ path, map, (size_t)st.st_size };
  return true;
}

int main(int argc, char **argv) {
  int rounds = 3, i = 1;
  enum what what = WHOLE;
  bool good = true;

  for (; i < argc && argv[i][0] == '-'; i++) {
    if (strcmp(argv[i], "--analyses") == 0)
      what = ANALYSES;
    else if (strcmp(argv[i], "--spans") == 0)
      what = SPANS;
    else if (strcmp(argv[i], "--states") == 0)
      what = STATES;
    else if (strcmp(argv[i], "--ahead") == 0)
      what = AHEAD;
    else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
      rounds = atoi(argv[++i]);
    else
      return fprintf(stderr, "usage: bench_order [-n ROUNDS] [--analyses | --spans | --states | "
                             "--ahead] FILE...\n"),
             2;
  }
  for (; i < argc; i++) {
    struct file file;
    if (!map_file(argv[i], &file)) {
      perror(argv[i]);
      return 1;
    }
    good = bench_file(&file, rounds, what) && good;
    munmap((void *)(uintptr_t)file.bytes, file.len);
  }
  return good ? 0 : 1;
}
