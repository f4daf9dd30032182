/* SPDX-License-Identifier: Apache-2.0 */
/* Random access into a long trace: how soon a generation in the middle of it gives its first event, by the
 * index beside the file, and how soon all of it is there.
 *
 *   bench_seek make FILE MB     writes a whole trace of about so many megabytes, in generations of 20
 *   bench_seek FILE             prints, tab-separated: generations, MB of the one asked for, then in
 *                               milliseconds of CPU, the median of ROUNDS: its first event from opening file and index
 *                               on, all its events by the cache, one of them again; MB the cache took
 *
 * Eight threads stop and start a goroutine each, as fast as a trace can say it: 6 bytes an event. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "online/cache.h"
#include "online/pull.h"
#include "tools/tracectl/index.h"
#include "wire/write.h"

enum { ROUNDS = 21, THREADS = 8, STACKS = 2000, GENERATION_MB = 20, VERSION = 26 };

static void fail(const char *what) {
  fprintf(stderr, "bench_seek: %s\n", what);
  exit(1);
}

/* ---- writing ---- */

struct maker {
  FILE *file;
  struct tw_write w;
  unsigned char room[TW_WRITE_ROOM];
  uint64_t gen, bytes;
};

static void begin_batch(struct maker *m, int64_t thread, uint64_t time) {
  struct tw_batch batch = { .gen = m->gen, .thread = thread, .time = time };
  tw_write_open(&m->w, m->room, sizeof m->room, VERSION, &batch);
}

static void end_batch(struct maker *m) {
  size_t n = tw_write_close(&m->w);

  if (fwrite(m->room, 1, n, m->file) != n) fail("cannot write");
  m->bytes += n;
}

static void write_tables(struct maker *m, uint64_t time) {
  const struct tw_clocks clocks = { 1000000000, time, time, 1700000000, time % 1000000000 };

  begin_batch(m, -1, time);
  if (tw_write_sync(&m->w, &clocks) != TB_OK) fail("no sync");
  end_batch(m);
  begin_batch(m, -1, time);
  if (tw_write_string(&m->w, 1, "preempted", 9) != TB_OK) fail("no string");
  end_batch(m);
  begin_batch(m, -1, time);
  for (uint64_t id = 1; id <= STACKS; id++) {
    struct tw_frame frames[8];
    for (uint64_t i = 0; i < 8; i++) frames[i] = (struct tw_frame){ 4096 + id * 8 + i, 1, 1, i };
    if (tw_write_stack(&m->w, id, frames, 8) == TB_OK) continue;
    end_batch(m);
    begin_batch(m, -1, time);
    id--;
  }
  end_batch(m);
}

/* One thread's events of a generation; answers when the last one was. */
static uint64_t write_thread(struct maker *m, uint64_t thread, uint64_t time, uint64_t bytes_max) {
  uint64_t until = m->bytes + bytes_max, seq = 0, g = thread + 1;
  const uint64_t proc[] = { thread, TW_PROC_RUNNING }, status[] = { g, thread, TW_GO_RUNNING };

  begin_batch(m, (int64_t)thread, time);
  if (tw_write_event(&m->w, TW_EV_PROC_STATUS, time, proc) != TB_OK ||
      tw_write_event(&m->w, TW_EV_GO_STATUS, time, status) != TB_OK)
    fail("no status");
  for (bool stop = true; m->bytes < until || !stop; stop = !stop) {
    const uint64_t stopped[] = { 1, 1 + seq % STACKS }, started[] = { g, seq + 1 };
    time += 40;
    tb_rc rc = tw_write_event(&m->w, stop ? TW_EV_GO_STOP : TW_EV_GO_START, time,
                              stop ? stopped : started);
    if (rc == TB_AGAIN) {
      end_batch(m);
      begin_batch(m, (int64_t)thread, time);
      rc = tw_write_event(&m->w, stop ? TW_EV_GO_STOP : TW_EV_GO_START, time,
                          stop ? stopped : started);
    }
    if (rc != TB_OK) fail("no event");
    seq += !stop;
  }
  end_batch(m);
  return time;
}

static void make(const char *path, uint64_t mb) {
  static struct maker m;
  unsigned char header[TW_HEADER_BYTES];
  uint64_t time = 1000000;

  m.file = fopen(path, "wb");
  if (m.file == NULL) fail("cannot write");
  tw_header_write(header, VERSION);
  fwrite(header, 1, sizeof header, m.file);
  for (m.gen = 1; m.bytes < mb * 1000000; m.gen++) {
    uint64_t last = time;
    write_tables(&m, time);
    for (uint64_t t = 0; t < THREADS; t++) {
      uint64_t end = write_thread(&m, t, time + t, GENERATION_MB * UINT64_C(1000000) / THREADS);
      if (end > last) last = end;
    }
    putc(TW_EV_END_OF_GENERATION, m.file);
    m.bytes++;
    time = last + 1000;
  }
  if (fclose(m.file) != 0) fail("cannot write");
}

/* ---- reading ---- */

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
  for (int i = 0; i < 2; i++) /* the Sync is ours; the next one the program wrote */
    if (to_pull_next(pull, &ev, &gen) != TB_OK) fail(o.diag.text);
  if (to_generation_number(gen) != o.middle->gen) fail("another generation");
  double took = cpu_ms() - start;
  to_pull_free(pull);
  close_trace(&o);
  return took;
}

struct whole {
  double first_ms, again_ms;
  size_t bytes;
};

static struct whole whole_generation(const char *path) {
  struct whole w = { 0 };
  struct to_ordered part;
  struct to_cache *cache;
  struct opened o;

  open_trace(path, &o);
  struct to_place place = { o.middle->offset, o.middle->bytes };
  if (to_cache_new(&o.mem, o.bytes, o.index.header_bytes, &place, 1, &cache) != TB_OK)
    fail("no memory");
  for (int i = 0; i < 2; i++) {
    double start = cpu_ms();
    if (to_cache_borrow(cache, 0, &o.diag, &part) != TB_OK) fail(o.diag.text);
    *(i == 0 ? &w.first_ms : &w.again_ms) = cpu_ms() - start;
    to_cache_return(cache, 0);
  }
  w.bytes = o.mem.bytes;
  to_cache_free(cache);
  close_trace(&o);
  return w;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  double first[ROUNDS];
  struct opened o;

  if (argc == 4 && strcmp(argv[1], "make") == 0) {
    make(argv[2], strtoull(argv[3], NULL, 10));
    return 0;
  }
  if (argc != 2) fail("usage: bench_seek make FILE MB | bench_seek FILE");
  for (int i = 0; i < ROUNDS; i++) first[i] = first_event_ms(argv[1]);
  qsort(first, ROUNDS, sizeof first[0], by_size);
  struct whole whole = whole_generation(argv[1]);
  open_trace(argv[1], &o);
  printf("%zu\t%.1f\t%.3f\t%.1f\t%.4f\t%.1f\n", o.index.n, (double)o.middle->bytes / 1e6,
         first[ROUNDS / 2], whole.first_ms, whole.again_ms, (double)whole.bytes / 1e6);
  close_trace(&o);
  return 0;
}
