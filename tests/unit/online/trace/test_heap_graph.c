/* SPDX-License-Identifier: Apache-2.0 */
/* J12: all heap spans at sweep termination and the pointers followed in scanning, as blobs of a trace that any tool
 * reads, through examples/heap-graph. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/blob_trace.h"
#include "wire/varint.h"

enum { SPANS = 30000, POINTERS = 100000, LEAF = 4711 };

static struct tt_blobs t;
static unsigned char rows[POINTERS * 2 * TW_VARINT_BYTES_MAX];

static size_t put(size_t at, uint64_t value) {
  return at + tw_varint_write(rows + at, value);
}

/* Writes a heap of equal spans, a fifth full; every pointer leads to the next span, every
 * hundredth to the same leaf. */
static size_t write_spans(void) {
  size_t n = 0;

  for (uint64_t i = 0; i < SPANS; i++) n = put(put(put(n, 1), 16), 512 / 5);
  return n;
}

static size_t write_pointers(void) {
  size_t n = 0;

  for (uint64_t i = 0; i < POINTERS; i++)
    n = put(put(n, i % SPANS), i % 100 == 0 ? LEAF : i % 10 == 0 ? i % SPANS : (i + 1) % SPANS);
  return n;
}

static void run(const char *expected) {
  char path[] = "/tmp/heap-graph-XXXXXX", command[400], said[2000];
  int fd = mkstemp(path);

  cr_assert_geq(fd, 0);
  cr_assert_eq(write(fd, t.bytes.data, t.bytes.len), (ssize_t)t.bytes.len);
  close(fd);
  snprintf(command, sizeof command, "%s %s 2>&1", TT_HEAP_GRAPH, path);
  FILE *out = popen(command, "r");
  cr_assert_not_null(out);
  size_t n = fread(said, 1, sizeof said - 1, out);
  said[n] = '\0';
  cr_assert_eq(pclose(out), 0, "%s", said);
  unlink(path);
  /* Removes the path, which precedes each complaint. */
  for (char *at; (at = strstr(said, path)) != NULL;)
    memmove(at, at + strlen(path), strlen(at + strlen(path)) + 1);
  cr_assert_str_eq(said, expected, "%s", said);
}

Test(heap_graph, spans_and_pointers_of_each_cycle_come_with_the_event_that_holds_them) {
  tt_blobs_open(&t);
  for (int cycle = 0; cycle < 2; cycle++) {
    tt_blobs_put(&t, "heap.spans", 1, rows, write_spans());
    tt_blobs_put(&t, "heap.pointers", 2, rows, write_pointers());
    tt_blobs_end(&t);
  }
  cr_assert_gt(t.bytes.len, 10 * TW_BATCH_BYTES_MAX);
  run("1003: 30000 spans of 240000 KiB, 47812 KiB of it live\n"
      "1004: 100000 pointers followed, 9000 within a span; most (1000) into span 4711; none into "
      "2999\n"
      "1008: 30000 spans of 240000 KiB, 47812 KiB of it live\n"
      "1009: 100000 pointers followed, 9000 within a span; most (1000) into span 4711; none into "
      "2999\n");
  tt_blobs_close(&t);
}

Test(heap_graph, a_blob_that_is_not_whole_is_said_and_left_out) {
  tt_blobs_open(&t);
  tt_blobs_batch(&t, TW_SUBSTREAM_BLOBS, "heap.spans");
  tt_blobs_piece(&t, 1, 9, 0, "\1\1\1\1\1\1", 6);
  tt_blobs_log(&t, "heap.spans", 1);
  tt_blobs_log(&t, "heap.pointers", 2);
  tt_blobs_put(&t, "heap.spans", 3, "\1\2\3", 3);
  tt_blobs_end(&t);
  run(": generation 1, thread 7, offset 55: blob 1: bytes 6 to 9 of 9 are missing\n"
      ": generation 1: blob 2 does not exist\n"
      "1005: 1 spans of 8 KiB, 0 KiB of it live\n");
  tt_blobs_close(&t);
}
