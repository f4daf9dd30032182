/* SPDX-License-Identifier: Apache-2.0 */
/* range-time TRACE: of each generation how much of it the collector marked, then how long each goroutine and P spent in
 * stops of the world, sweeps and mark assists.
 *
 *   cc range_time.c $(pkg-config --cflags --libs traceonline) -o range-time
 *
 * A range may go on over many generations; each restates it ("active since the last Sync"). Its span (online/spans/spans.h) is
 * one all the same, and can be asked for while it goes on. "+" marks what began before the trace: it lasted longer. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "online/spans/spans.h"
#include "online/trace/reader.h"
#include "wire/spec.h"

enum { ROWS = 1 << 14 };

struct account {
  struct to_spans *spans;
  to_ns sync;       /* when the generation began */
  uint64_t marking; /* in it */
  struct row {
    unsigned kind;
    int64_t id;
    uint64_t ns, ended;
    bool active, lower_bound;
  } rows[ROWS];
  size_t n;
};

static tb_rc add(void *self, const struct to_span *span) {
  struct account *a = self;
  size_t i = 0;

  while (i < a->n && (a->rows[i].kind != span->state || a->rows[i].id != span->id)) i++;
  if (i == ROWS) return TB_BUDGET;
  if (i == a->n) a->rows[a->n++] = (struct row){ .kind = span->state, .id = span->id };
  a->rows[i].ns += (uint64_t)(span->until - span->from);
  a->rows[i].ended += !span->open;
  a->rows[i].active |= span->open;
  a->rows[i].lower_bound |= !span->from_known;
  return TB_OK;
}

static tb_rc add_marking(void *self, const struct to_span *span) {
  struct account *a = self;
  to_ns from = span->from > a->sync ? span->from : a->sync;

  if (span->state == TO_RANGE_GC_MARK) a->marking += (uint64_t)(span->until - from);
  return TB_OK;
}

static tb_rc ended(void *self, const struct to_generation *gen, const struct to_span *span,
                   size_t n) {
  (void)gen;
  for (; n > 0; n--, span++) {
    TB_TRY(add(self, span));
    TB_TRY(add_marking(self, span));
  }
  return TB_OK;
}

static tb_rc events(void *self, const struct to_generation *gen, const struct to_event *ev,
                    size_t n) {
  struct account *a = self;

  if (ev->type == TW_EV_SYNC) { /* a generation's first event */
    a->sync = ev->time;
    a->marking = 0;
  }
  return to_spans_events(a->spans, gen, ev, n);
}

static tb_rc print_generation(void *self, const struct to_generation *gen) {
  struct account *a = self;
  uint64_t ended_ns = a->marking;

  TB_TRY(to_spans_open(a->spans, add_marking, a));
  printf("generation %" PRIu64 ": %" PRIu64 " of %" PRIu64 " ns marking%s\n",
         to_generation_number(gen), a->marking, (uint64_t)(to_spans_now(a->spans) - a->sync),
         a->marking > ended_ns ? ", and it goes on" : "");
  return to_spans_generation_ends(a->spans, gen);
}

static void print_sums(const struct account *a) {
  for (const struct row *row = a->rows; row < a->rows + a->n; row++) {
    const struct to_range_info *info = to_range_info((enum to_range_kind)row->kind);
    printf("%s %s %" PRId64 ": %" PRIu64 "%s ns, %" PRIu64 " ended%s\n", info->id,
           to_resource_name(info->scope), row->id, row->ns, row->lower_bound ? "+" : "", row->ended,
           row->active ? ", 1 active" : "");
  }
}

int main(int argc, char **argv) {
  const struct to_spans_config config = { .wanted = TO_WANT(RANGE) };
  static struct account a;
  struct to_reader *reader = NULL;
  struct tb_diag diag = { 0 };
  struct tb_mem mem;
  struct stat st;
  int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

  if (fd < 0 || fstat(fd, &st) != 0) return fprintf(stderr, "usage: range-time TRACE\n"), 2;
  const unsigned char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return perror(argv[1]), 1;
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_rc rc = to_spans_new(&mem, &config, (struct to_span_sink){ &a, ended }, &a.spans);
  if (rc == TB_OK)
    rc = to_reader_new(&mem, NULL, TO_READER_BYTES_STAY, (struct to_event_sink){ &a, events },
                       &diag, &reader);
  if (rc != TB_OK) return fprintf(stderr, "range-time: %s\n", tb_rc_text(rc)), 1;
  to_reader_on_end(reader, &a, print_generation);
  rc = to_reader_read(reader, bytes, (size_t)st.st_size);
  if (rc == TB_OK) rc = to_spans_open(a.spans, add, &a);
  print_sums(&a);
  to_reader_free(reader);
  to_spans_free(a.spans);
  if (rc != TB_OK) fprintf(stderr, "%s: %s\n", argv[1], diag.text);
  return rc == TB_OK ? 0 : 1;
}
