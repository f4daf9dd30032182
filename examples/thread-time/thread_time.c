/* SPDX-License-Identifier: Apache-2.0 */
/* thread-time TRACE: what a trace is, then how long its threads ran Go code, sat in system calls, were blocked
 * in them, or had nothing to do. No procs anywhere: goroutines run on threads.
 *
 *   cc thread_time.c $(pkg-config --cflags --libs traceonline) -o thread-time
 *
 * The pull side of libtraceonline: the survey says beforehand how much there is to read, and the loop asks
 * for the next span. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "online/spans/pull.h"
#include "online/trace/survey.h"

enum { STATES = TO_THREAD_BLOCKED + 1 };

struct sums {
  uint64_t spans[STATES], total_ns[STATES], at_least[STATES]; /* at_least: of spans, began unseen */
};

static void add(struct sums *sums, const struct to_span *span) {
  if (!span->until_known) return;
  sums->spans[span->state]++;
  sums->total_ns[span->state] += (uint64_t)(span->until - span->from);
  sums->at_least[span->state] += !span->from_known;
}

static tb_rc read_trace(struct tb_mem *mem, struct to_part *part, struct sums *sums,
                        struct tb_diag *diag) {
  const struct to_spans_config config = { .wanted = TO_WANT(THREAD) };
  const struct to_generation *gen;
  const struct to_span *span;
  struct to_span_pull *pull;
  tb_rc rc;

  TB_TRY(to_span_pull_new(mem, NULL, TO_READER_BYTES_STAY, &config, to_part_source(part), diag,
                          &pull));
  while ((rc = to_span_pull_next(pull, &span, &gen)) == TB_OK) add(sums, span);
  to_span_pull_free(pull);
  return rc == TB_END ? TB_OK : rc;
}

int main(int argc, char **argv) {
  struct tb_diag diag = { 0 };
  struct to_survey survey;
  struct sums sums = { 0 };
  struct tb_mem mem;
  struct stat st;
  int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

  if (fd < 0 || fstat(fd, &st) != 0) return fprintf(stderr, "usage: thread-time TRACE\n"), 2;
  size_t len = (size_t)st.st_size, header = len < 16 ? len : 16;
  const unsigned char *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return perror(argv[1]), 1;
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_rc rc = to_survey(bytes, len < 1 << 20 ? len : 1 << 20, len, &mem, &diag, &survey);
  if (rc == TB_OK) {
    printf("go 1.%u, %s%" PRIu64 " events, %s\n", survey.version, survey.exact ? "" : "about ",
           survey.events, survey.has & TO_HAS_CLOCK ? "with wall clock" : "no wall clock");
    rc = read_trace(&mem, &(struct to_part){ bytes, header, header, len, 0 }, &sums, &diag);
    for (int s = 0; s < STATES; s++)
      printf("%-8s %12.3f ms in %" PRIu64 " spans, %" PRIu64 " of them longer than seen\n",
             to_thread_state_name((enum to_thread_state)s), (double)sums.total_ns[s] / 1e6,
             sums.spans[s], sums.at_least[s]);
  }
  if (rc != TB_OK) fprintf(stderr, "%s: %s\n", argv[1], diag.text);
  return rc == TB_OK ? 0 : 1;
}
