/* SPDX-License-Identifier: Apache-2.0 */
/* where-time-goes TRACE: how long goroutines, Ps and ranges of the runtime were in which state, and goroutines for which
 * reason. Only spans count whose begin and end the trace shows.
 *
 *   cc where_time_goes.c $(pkg-config --cflags --libs traceonline) -o where-time-goes
 *
 * The pull side of spans (online/spans/pull.h); who-waits shows the push side. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "online/spans/pull.h"

enum { STATES = 8 };

static struct sum { uint64_t count, ns; } sums[TO_SPAN_KINDS][STATES][TO_REASONS_MAX];

static const char *state_name(unsigned kind, unsigned state) {
  if (kind == TO_SPAN_RANGE) return to_range_info((enum to_range_kind)state)->name;
  if (kind == TO_SPAN_PROC) return to_proc_state_name((enum to_proc_state)state);
  return to_go_state_name((enum to_go_state)state);
}

static void add(const struct to_span *span) {
  unsigned reason = span->state == TO_GO_WAITING ? span->reason : TO_REASON_OTHER;
  struct sum *sum = &sums[span->kind][span->state][span->kind == TO_SPAN_GOROUTINE ? reason : 0];

  if (!span->from_known || !span->until_known) return;
  sum->count++;
  sum->ns += (uint64_t)(span->until - span->from);
}

static void print(const struct to_spans *spans) {
  for (unsigned kind = 0; kind < TO_SPAN_KINDS; kind++)
    for (unsigned state = 0; state < STATES; state++)
      for (unsigned reason = 0; reason < TO_REASONS_MAX; reason++) {
        const struct sum *sum = &sums[kind][state][reason];
        const char *text = to_spans_reason(spans, reason)->text;
        if (sum->count > 0)
          printf("%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\n",
                 to_span_kind_name((enum to_span_kind)kind), state_name(kind, state),
                 text == NULL ? "" : text, sum->count, sum->ns);
      }
}

int main(int argc, char **argv) {
  const struct to_spans_config config = { .wanted =
                                              TO_WANT(GOROUTINE) | TO_WANT(PROC) | TO_WANT(RANGE) };
  const struct to_generation *gen;
  const struct to_span *span;
  struct to_span_pull *pull;
  struct tb_diag diag = { 0 };
  struct tb_mem mem;
  struct stat st;

  int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
  if (fd < 0 || fstat(fd, &st) != 0) return fprintf(stderr, "usage: where-time-goes TRACE\n"), 2;
  size_t size = (size_t)st.st_size;
  void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED)
    return fprintf(stderr, "where-time-goes: %s cannot be mapped\n", argv[1]), 1;
  struct to_part whole = { .trace = bytes, .header = 16, .begin = 16, .end = size };
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_rc rc = to_span_pull_new(&mem, NULL, TO_READER_BYTES_STAY, &config, to_part_source(&whole),
                              &diag, &pull);
  if (rc != TB_OK) return fprintf(stderr, "where-time-goes: %s\n", tb_rc_text(rc)), 1;
  while ((rc = to_span_pull_next(pull, &span, &gen)) == TB_OK) add(span);
  print(to_span_pull_spans(pull));
  to_span_pull_free(pull);
  if (rc != TB_END) fprintf(stderr, "where-time-goes: %s: %s\n", argv[1], diag.text);
  return rc == TB_END ? 0 : 1;
}
