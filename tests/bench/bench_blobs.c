/* SPDX-License-Identifier: Apache-2.0 */
/* bench_blobs events|blobs N [FILE]: writes N rows of three numbers (as of a heap span: id, pages, class), each as an event or
 * all in one blob, and also to FILE if given. Then reads them again and checks their sum. bench_blobs.sh counts the
 * instructions within write_events(), write_blobs() and read_rows(). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "online/trace/reader.h"
#include "online/trace/substreams.h"
#include "wire/varint.h"

enum { NAME_LEN = 10, THREAD = 1, ROW_BYTES_MAX = 3 * TW_VARINT_BYTES_MAX, NEXT_NS = 100 };
static const char name[] = "heap.spans";

static unsigned char room[TW_WRITE_ROOM];

static void must(tb_rc rc) {
  if (rc == TB_OK) return;
  fprintf(stderr, "bench_blobs: %s\n", tb_rc_text(rc));
  exit(1);
}

static void make_row(uint64_t i, uint64_t row[3]) {
  row[0] = i * 3;
  row[1] = 1 + i % 4;
  row[2] = i % 67 << 2;
}

static void ship(struct tw_write *w, struct tb_buf *out) {
  tb_buf_add(out, room, tw_write_close(w));
}

static void open_batch(struct tw_write *w, int64_t thread, uint64_t time, uint8_t experiment) {
  tw_write_open(
      w, room, sizeof room, 26,
      &(struct tw_batch){ .gen = 1, .thread = thread, .time = time, .experiment = experiment });
}

__attribute__((noinline)) static void write_events(uint64_t n, uint64_t time, struct tb_buf *out) {
  struct tw_write w;

  open_batch(&w, THREAD, time, 0);
  for (uint64_t i = 0; i < n; i++) {
    uint64_t row[3];
    make_row(i, row);
    time += NEXT_NS;
    while (tw_write_event(&w, TW_EV_SPAN, time, row) == TB_AGAIN) {
      ship(&w, out);
      open_batch(&w, THREAD, time, 0);
    }
  }
  ship(&w, out);
}

__attribute__((noinline)) static void write_blobs(uint64_t n, uint64_t time, struct tb_buf *out,
                                                  unsigned char *rows) {
  struct tw_write w;
  size_t len = 0;
  tb_rc rc;

  for (uint64_t i = 0; i < n; i++) {
    uint64_t row[3];
    make_row(i, row);
    for (int k = 0; k < 3; k++) len += tw_varint_write(rows + len, row[k]);
  }
  struct tw_blob blob = { .id = 1, .bytes = rows, .len = len };
  do {
    open_batch(&w, THREAD, time, TW_EXPERIMENT_ALLOC_FREE);
    must(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, name, NAME_LEN));
    rc = tw_write_blob(&w, &blob);
    ship(&w, out);
  } while (rc == TB_AGAIN);
  must(rc);
  open_batch(&w, THREAD, time, 0); /* the event that refers to the blob */
  must(tw_write_event(&w, TW_EV_USER_LOG, time, (uint64_t[]){ 0, 1, 2, 0 }));
  ship(&w, out);
}

/* Writes the batches that every generation has: clocks, names, one goroutine on one thread. */
static void write_frame(struct tb_buf *out) {
  const struct tw_clocks clocks = { .frequency = 1000000000, .time = 1000, .mono_ns = 1000 };
  unsigned char header[TW_HEADER_BYTES];
  char word[TW_BLOB_WORD_BYTES];
  struct tw_write w;

  tw_header_write(header, 26);
  tb_buf_add(out, header, sizeof header);
  open_batch(&w, TB_NO_THREAD, 1000, 0);
  must(tw_write_sync(&w, &clocks));
  ship(&w, out);
  open_batch(&w, TB_NO_THREAD, 1000, 0);
  must(tw_write_string(&w, 1, name, NAME_LEN));
  must(tw_write_string(&w, 2, word, tw_blob_word(1, word)));
  ship(&w, out);
  open_batch(&w, THREAD, 1000, 0);
  must(tw_write_event(&w, TW_EV_PROC_STATUS, 1001, (uint64_t[]){ 0, TW_PROC_RUNNING }));
  must(tw_write_event(&w, TW_EV_GO_STATUS, 1002, (uint64_t[]){ 1, THREAD, TW_GO_RUNNING }));
  ship(&w, out);
}

struct sum {
  struct to_substreams *s;
  uint64_t rows, total;
};

static void add_row(struct sum *sum, const uint64_t *row) {
  sum->rows++;
  sum->total += row[0] + row[1] + row[2];
}

static tb_rc add_blob(struct sum *sum, uint64_t id) {
  struct to_bytes bytes;

  TB_TRY(to_blob_read(sum->s, id, NULL, &bytes));
  const unsigned char *pos = bytes.data, *end = bytes.data + bytes.len;
  while (pos < end) {
    uint64_t row[3];
    for (int k = 0; k < 3; k++) {
      int used = tw_varint_read(pos, end, &row[k]);
      if (used <= 0) return TB_BROKEN;
      pos += used;
    }
    add_row(sum, row);
  }
  return TB_OK;
}

static tb_rc take(void *self, const struct to_generation *gen, const struct to_event *ev,
                  size_t n) {
  struct sum *sum = self;

  for (; n > 0; n--, ev++) {
    uint64_t id;
    if (ev->type == TW_EV_SPAN) add_row(sum, ev->args);
    if (ev->type == TW_EV_SYNC && gen != NULL) TB_TRY(to_substreams_generation(sum->s, gen));
    if ((id = to_event_blob(gen, ev)) != 0) TB_TRY(add_blob(sum, id));
  }
  return TB_OK;
}

__attribute__((noinline)) static struct sum read_rows(const struct tb_buf *trace,
                                                      struct tb_mem *mem) {
  struct sum sum = { .rows = 0 };
  struct to_reader *reader;

  must(to_substreams_new(mem, (struct to_fault_sink){ NULL, NULL }, &sum.s));
  must(to_reader_new(mem, NULL, TO_READER_BYTES_STAY, (struct to_event_sink){ &sum, take }, NULL,
                     &reader));
  must(to_reader_read(reader, trace->data, trace->len));
  to_reader_free(reader);
  to_substreams_free(sum.s);
  return sum;
}

int main(int argc, char **argv) {
  uint64_t n = argc >= 3 ? strtoull(argv[2], NULL, 10) : 0, want = 0;
  FILE *file = argc == 4 ? fopen(argv[3], "wb") : NULL;
  struct tb_buf trace;
  struct tb_mem mem;

  if (n == 0 || (argc == 4 && file == NULL))
    return fprintf(stderr, "usage: bench_blobs events|blobs N [FILE]\n"), 2;
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&trace, &mem);
  must(tb_buf_reserve(&trace, n * ROW_BYTES_MAX + (1 << 20)));
  unsigned char *rows = malloc(n * ROW_BYTES_MAX);
  if (rows == NULL) return 1;
  write_frame(&trace);
  if (strcmp(argv[1], "events") == 0)
    write_events(n, 2000, &trace);
  else
    write_blobs(n, 2000, &trace, rows);
  tb_buf_byte(&trace, TW_EV_END_OF_GENERATION);
  if (file != NULL && (fwrite(trace.data, 1, trace.len, file) != trace.len || fclose(file) != 0))
    return perror(argv[3]), 1;
  struct sum sum = read_rows(&trace, &mem);
  for (uint64_t i = 0; i < n; i++) {
    uint64_t row[3];
    make_row(i, row);
    want += row[0] + row[1] + row[2];
  }
  printf("%" PRIu64 "\t%zu\n", sum.rows, trace.len);
  free(rows);
  tb_buf_fini(&trace);
  return sum.rows == n && sum.total == want ? 0 : 1;
}
