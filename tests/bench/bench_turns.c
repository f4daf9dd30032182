/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the analysis of many quiet streams that take turns on one loop, as in the collector: each turn finds the
 * stream's state in no cache.
 *
 * bench_turns TRACE [STREAMS...]: for each number of streams a row "streams order_us all_us KiB": CPU time a generation
 * ordered, ordered and analysed, the least of ROUNDS rounds of one generation of every stream; memory a stream. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "online/analysis/analysis.h"
#include "online/analysis/room.h"
#include "online/event/tables.h"
#include "online/trace/reader.h"
#include "wire/split.h"

enum { ROUNDS = 60, GENERATIONS_MAX = 256, WARM = 20 };

struct piece {
  const unsigned char *bytes;
  size_t n;
};
static struct piece head, generation[GENERATIONS_MAX];
static size_t generations;

struct stream {
  struct to_reader *reader;
  struct to_analyses *analyses; /* NULL: only ordered */
};

static void fail(const char *what) {
  fprintf(stderr, "bench_turns: %s\n", what);
  exit(1);
}

static void must(tb_rc rc) {
  if (rc != TB_OK) fail(tb_rc_text(rc));
}

static double cpu_us(void) {
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static tb_rc take_events(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  struct stream *s = self;

  return s->analyses == NULL ? TB_OK : to_analyses_events(s->analyses, gen, events, n);
}

static tb_rc end_generation(void *self, const struct to_generation *gen) {
  struct stream *s = self;

  return s->analyses == NULL ? TB_OK : to_analyses_generation_ends(s->analyses, gen);
}

static void read_trace(const char *path, struct tb_mem *mem) {
  struct tw_split split;
  struct tw_item item;
  uint64_t last = 0;
  size_t used;
  FILE *file = fopen(path, "rb");

  if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(path);
  size_t n = (size_t)ftell(file), at = 0;
  unsigned char *bytes = malloc(n);
  rewind(file);
  if (bytes == NULL || fread(bytes, 1, n, file) != n) fail(path);
  fclose(file);
  tw_split_init(&split, mem);
  for (; at < n && tw_split_feed(&split, bytes + at, n - at, &used, &item) == TB_OK; at += used) {
    if (item.kind == TW_ITEM_HEADER) head = (struct piece){ bytes + at, item.len };
    if (item.kind == TW_ITEM_BATCH && item.batch.gen != last) {
      last = item.batch.gen;
      if (generations == GENERATIONS_MAX) break;
      generation[generations++].bytes = bytes + at;
    }
    if (generations > 0) generation[generations - 1].n += used;
  }
  tw_split_fini(&split);
  if (generations < ROUNDS + WARM) fail("the trace has too few generations");
}

static void turn(struct stream *s, const struct piece *gen) {
  must(to_reader_begin(s->reader));
  must(to_reader_push(s->reader, head.bytes, head.n));
  must(to_reader_push(s->reader, gen->bytes, gen->n));
  must(to_reader_end(s->reader));
  to_reader_rest(s->reader);
}

/* Returns the CPU time of a generation; *out_kib: of a stream's memory. */
static double measure(unsigned streams, bool analyse, size_t *out_kib) {
  struct stream *stream = calloc(streams, sizeof *stream);
  struct to_limits limits = { 0 };
  struct tb_mem mem, own;
  struct to_generation_pool pool;
  static struct to_analysis_room room;
  struct tb_diag diag;
  double least = 0;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_mem_init(&own, tb_mem_libc, NULL, SIZE_MAX);
  room = (struct to_analysis_room){ 0 };
  to_analysis_room_init(&room, &own, &mem);
  to_generation_pool_init(&pool, tb_mem_libc, NULL, 4 << 20);
  const struct to_analysis_config config = { .blocked_after_ns = TO_BLOCKED_AFTER_NS_DEFAULT,
                                             .stacks_max = TO_STACKS_MAX_DEFAULT,
                                             .room = &room,
                                             .is_live = true };
  for (unsigned i = 0; i < streams; i++) {
    tb_diag_clear(&diag);
    if (analyse) must(to_analyses_new(&mem, &config, &stream[i].analyses));
    must(to_reader_new(&mem, &limits, TO_READER_BYTES_STAY,
                       (struct to_event_sink){ &stream[i], take_events }, &diag,
                       &stream[i].reader));
    to_reader_share(stream[i].reader, &pool);
    to_reader_on_end(stream[i].reader, &stream[i], end_generation);
  }
  for (unsigned round = 0; round < ROUNDS + WARM; round++) {
    double before = cpu_us();
    for (unsigned i = 0; i < streams; i++) turn(&stream[i], &generation[round]);
    double us = (cpu_us() - before) / streams;
    if (round == WARM || (round > WARM && us < least)) least = us;
  }
  *out_kib = mem.bytes / streams >> 10;
  for (unsigned i = 0; i < streams; i++) {
    to_reader_free(stream[i].reader);
    to_analyses_free(stream[i].analyses);
  }
  to_analysis_room_fini(&room);
  to_generation_pool_fini(&pool);
  free(stream);
  return least;
}

int main(int argc, char **argv) {
  struct tb_mem mem;
  size_t kib;

  if (argc < 3) fail("usage: bench_turns TRACE STREAMS...");
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  read_trace(argv[1], &mem);
  printf("%10s %10s %10s %10s\n", "streams", "order_us", "all_us", "KiB");
  for (int i = 2; i < argc; i++) {
    unsigned streams = (unsigned)strtoul(argv[i], NULL, 10);
    double order = measure(streams, false, &kib), all = measure(streams, true, &kib);
    printf("%10u %10.1f %10.1f %10zu\n", streams, order, all, kib);
  }
  return 0;
}
