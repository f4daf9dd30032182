/* SPDX-License-Identifier: Apache-2.0 */
/* Random access into a long trace: measures the time to the first event of a generation in its middle, with the index
 * beside the file.
 *
 *   bench_seek FILE   prints, tab-separated: generations, and in milliseconds of CPU, the median of ROUNDS: the first
 *                     event from opening file and index on */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "online/trace/pull.h"
#include "tools/tracectl/trace_file/index.h"

enum { ROUNDS = 21 };

static void fail(const char *what) {
  fprintf(stderr, "bench_seek: %s\n", what);
  exit(1);
}

static double cpu_ms(void) {
  struct timespec ts;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

struct opened {
  struct tk_index index;
  const unsigned char *bytes;
  size_t len;
  const struct tk_index_row *middle;
  struct tb_mem mem; /* for whoever reads it */
  struct tb_diag diag;
};

static void open_trace(const char *path, struct opened *out) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat st;

  if (fd < 0 || fstat(fd, &st) != 0) fail("cannot read the trace");
  out->len = (size_t)st.st_size;
  void *bytes = mmap(NULL, out->len, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (bytes == MAP_FAILED) fail("cannot map the trace");
  out->bytes = bytes;
  if (!tk_index_load(path, &out->index)) fail("no index beside the trace");
  out->middle = &out->index.row[out->index.n / 2];
  tb_mem_init(&out->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&out->diag);
}

static void close_trace(struct opened *o) {
  munmap((void *)(uintptr_t)o->bytes, o->len);
  tk_index_fini(&o->index);
}

static double first_event_ms(const char *path) {
  double start = cpu_ms();
  const struct to_generation *gen;
  const struct to_event *ev;
  struct to_pull *pull;
  struct opened o;

  open_trace(path, &o);
  struct to_part part = { o.bytes, o.index.header_bytes, o.middle->offset,
                          o.middle->offset + o.middle->bytes, 0 };
  if (to_pull_new(&o.mem, NULL, TO_READER_BYTES_STAY, to_part_source(&part), &o.diag, &pull) !=
      TB_OK)
    fail("no memory");
  for (int i = 0; i < 2; i++) /* the reader adds the Sync; the next event is the program's */
    if (to_pull_next(pull, &ev, &gen) != TB_OK) fail(o.diag.text);
  if (to_generation_number(gen) != o.middle->gen) fail("another generation");
  double took = cpu_ms() - start;
  to_pull_free(pull);
  close_trace(&o);
  return took;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  double first[ROUNDS];
  struct opened o;

  if (argc != 2) fail("usage: bench_seek FILE");
  for (int i = 0; i < ROUNDS; i++) first[i] = first_event_ms(argv[1]);
  qsort(first, ROUNDS, sizeof first[0], by_size);
  open_trace(argv[1], &o);
  printf("%zu\t%.3f\n", o.index.n, first[ROUNDS / 2]);
  close_trace(&o);
  return 0;
}
