/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and orders traces in memory into a sink that counts, and says what an event costs.
 *
 *   bench_order [-n ROUNDS] [--analyses] FILE...
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

#include "online/analysis.h"
#include "online/reader.h"
#include "wire/split.h"

struct file {
  const char *path;
  const unsigned char *bytes;
  size_t len;
};

struct bench {
  uint64_t events;
  struct to_analyses *analyses; /* NULL: count only */
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
  return bench->analyses == NULL ? TB_OK : to_analyses_events(bench->analyses, gen, events, n);
}

static tb_rc run_once(const struct file *file, bool analyses, struct bench *bench, size_t *memory,
                      struct tb_diag *diag) {
  static const struct to_analysis_config config = { .blocked_after_ns = 10000000,
                                                    .stacks_max = 1000 };
  struct to_event_sink sink = { bench, take };
  struct to_reader *reader = NULL;
  struct tb_mem mem;
  tb_rc rc = TB_OK;

  *bench = (struct bench){ 0 };
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(diag);
  if (analyses) rc = to_analyses_new(&mem, &config, &bench->analyses);
  if (rc == TB_OK) rc = to_reader_new(&mem, NULL, TO_READER_BYTES_STAY, sink, diag, &reader);
  if (rc == TB_OK) rc = to_reader_read(reader, file->bytes, file->len);
  to_reader_free(reader);
  to_analyses_free(bench->analyses);
  *memory = mem.bytes_peak;
  return rc;
}

/* Bytes of its batches, their headers included. */
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

static bool bench_file(const struct file *file, int rounds, bool analyses) {
  int64_t best = INT64_MAX;
  struct tb_diag diag;
  struct bench bench;
  size_t memory = 0;

  for (int i = 0; i < rounds; i++) {
    int64_t start = cpu_ns();
    tb_rc rc = run_once(file, analyses, &bench, &memory, &diag);
    int64_t took = cpu_ns() - start;
    if (rc != TB_OK) {
      fprintf(stderr, "bench_order: %s: %s %s\n", file->path, tb_rc_name(rc), diag.text);
      return false;
    }
    if (took < best) best = took;
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
  bool analyses = false, good = true;

  for (; i < argc && argv[i][0] == '-'; i++) {
    if (strcmp(argv[i], "--analyses") == 0)
      analyses = true;
    else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
      rounds = atoi(argv[++i]);
    else
      return fprintf(stderr, "usage: bench_order [-n ROUNDS] [--analyses] FILE...\n"), 2;
  }
  for (; i < argc; i++) {
    struct file file;
    if (!map_file(argv[i], &file)) {
      perror(argv[i]);
      return 1;
    }
    good = bench_file(&file, rounds, analyses) && good;
    munmap((void *)(uintptr_t)file.bytes, file.len);
  }
  return good ? 0 : 1;
}
