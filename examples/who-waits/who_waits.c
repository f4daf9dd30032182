/* SPDX-License-Identifier: Apache-2.0 */
/* who-waits TRACE: what goroutines waited for, how long in all, and which function woke them.
 *
 *   cc who_waits.c $(pkg-config --cflags --libs traceonline) -o who-waits
 *
 * A whole analysis: a reader orders the file's events, spans of goroutines that waited come out of them, and the sum is
 * ours. The same sink works on a live stream, fed as bytes come. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "online/spans/spans.h"
#include "online/trace/reader.h"

enum { ROWS = 4096 };

struct row {
  unsigned reason;
  char waker[80];
  uint64_t waits, total_ns;
};

struct analysis {
  struct to_spans *spans;
  struct row rows[ROWS];
  size_t count;
};

/* The innermost function of the event's stack: the caller that unblocked it. */
static void name_waker(const struct to_generation *gen, uint64_t stack, char *out,
                       size_t out_bytes) {
  struct to_stack_iter it;
  struct to_frame frame;

  snprintf(out, out_bytes, "(the runtime)");
  if (stack == 0 || !to_generation_stack(gen, stack, &it)) return;
  if (to_stack_next(&it, &frame))
    snprintf(out, out_bytes, "%.*s", (int)frame.function.len, frame.function.data);
}

static void add(struct analysis *a, unsigned reason, const char *waker, uint64_t ns) {
  size_t i = 0;

  while (i < a->count && (a->rows[i].reason != reason || strcmp(a->rows[i].waker, waker) != 0)) i++;
  if (i == ROWS) return;
  if (i == a->count) {
    a->rows[i].reason = reason;
    snprintf(a->rows[i].waker, sizeof a->rows[i].waker, "%s", waker);
    a->count++;
  }
  a->rows[i].waits++;
  a->rows[i].total_ns += ns;
}

static tb_rc waits(void *self, const struct to_generation *gen, const struct to_span *span,
                   size_t n) {
  char waker[80];

  for (; n > 0; n--, span++) {
    name_waker(gen, span->by_stack, waker, sizeof waker);
    add(self, span->reason, waker, (uint64_t)(span->until - span->from));
  }
  return TB_OK;
}

static tb_rc events(void *self, const struct to_generation *gen, const struct to_event *ev,
                    size_t n) {
  struct analysis *a = self;
  return to_spans_events(a->spans, gen, ev, n);
}

static int by_total(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

int main(int argc, char **argv) {
  const struct to_spans_config config = { .wanted = TO_WANT_GO(WAITING) };
  static struct analysis a;
  struct tb_mem mem;
  struct tb_diag diag = { 0 };
  struct to_reader *reader;
  struct stat st;
  int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

  if (fd < 0 || fstat(fd, &st) != 0) return fprintf(stderr, "usage: who-waits TRACE\n"), 2;
  const unsigned char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return perror(argv[1]), 1;
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  if (to_spans_new(&mem, &config, (struct to_span_sink){ &a, waits }, &a.spans) != TB_OK ||
      to_reader_new(&mem, NULL, TO_READER_BYTES_STAY | TO_READER_FRAMES,
                    (struct to_event_sink){ &a, events }, &diag, &reader) != TB_OK)
    return fprintf(stderr, "out of memory\n"), 1;

  tb_rc rc = to_reader_read(reader, bytes, (size_t)st.st_size);
  qsort(a.rows, a.count, sizeof a.rows[0], by_total);
  printf("%12s %10s  %-20s %s\n", "TOTAL ms", "WAITS", "REASON", "WOKEN BY");
  for (size_t i = 0; i < a.count; i++)
    printf("%12.3f %10" PRIu64 "  %-20s %s\n", (double)a.rows[i].total_ns / 1e6, a.rows[i].waits,
           to_spans_reason(a.spans, a.rows[i].reason)->display, a.rows[i].waker);
  to_reader_free(reader);
  to_spans_free(a.spans);
  if (rc != TB_OK) fprintf(stderr, "%s: %s\n", argv[1], diag.text);
  return rc == TB_OK ? 0 : 1;
}
