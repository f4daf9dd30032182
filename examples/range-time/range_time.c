/* SPDX-License-Identifier: Apache-2.0 */
/* range-time TRACE: of each generation how much of it the collector marked, then how long each goroutine and P spent in
 * stops of the world, sweeps and mark assists.
 *
 *   cc range_time.c $(pkg-config --cflags --libs traceonline) -o range-time
 *
 * A range may go on over many generations; each restates it ("active since the last Sync"). analysis/range_time.h keeps
 * the accounts, so that nothing here knows of that. "+" marks what began before the trace: it lasted longer. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "analysis/range_time.h"
#include "trace/pull.h"

/* The generation that ends at `now`, before the Sync that ends it is handed over: up to the last event before it. */
static void print_generation(const struct to_range_times *times, uint64_t number, to_ns last) {
  struct to_range_time gc;

  to_range_times_find(times, TO_RANGE_GC_MARK, 0, &gc);
  printf("generation %" PRIu64 ": %" PRIu64 " of %" PRIu64 " ns marking%s\n", number,
         gc.since_sync_ns, (uint64_t)(last - to_range_times_sync(times)),
         gc.active ? ", and it goes on" : "");
}

static void print_sums(const struct to_range_times *times) {
  struct to_range_time row;

  for (size_t pos = 0; to_range_times_next(times, &pos, &row);) {
    const struct to_range_info *info = to_range_info(row.kind);
    printf("%s %s %" PRId64 ": %" PRIu64 "%s ns, %" PRIu64 " ended%s\n", info->id,
           to_resource_name(info->scope), row.id, row.total_ns, row.lower_bound ? "+" : "",
           row.ended, row.active ? ", 1 active" : "");
  }
}

static tb_rc read_trace(struct to_pull *pull, struct to_range_times *times) {
  const struct to_generation *gen;
  const struct to_event *ev;
  uint64_t number = 0;
  to_ns last = 0;
  tb_rc rc;

  while ((rc = to_pull_next(pull, &ev, &gen)) == TB_OK) {
    if (ev->type == TW_EV_SYNC && number != 0) print_generation(times, number, last);
    if (ev->type == TW_EV_SYNC) number = gen == NULL ? 0 : to_generation_number(gen);
    TB_TRY(to_range_times_event(times, ev));
    last = ev->time;
  }
  print_sums(times);
  return rc == TB_END ? TB_OK : rc;
}

int main(int argc, char **argv) {
  struct to_range_times *times = NULL;
  struct to_pull *pull = NULL;
  struct tb_diag diag = { 0 };
  struct tb_mem mem;
  struct stat st;
  int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

  if (fd < 0 || fstat(fd, &st) != 0) return fprintf(stderr, "usage: range-time TRACE\n"), 2;
  size_t len = (size_t)st.st_size, header = len < 16 ? len : 16;
  const unsigned char *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return perror(argv[1]), 1;
  struct to_part part = { bytes, header, header, len, 0 };
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_rc rc = to_range_times_new(&mem, &times);
  if (rc == TB_OK)
    rc = to_pull_new(&mem, NULL, TO_READER_BYTES_STAY, to_part_source(&part), &diag, &pull);
  if (rc == TB_OK) rc = read_trace(pull, times);
  to_pull_free(pull);
  to_range_times_free(times);
  if (rc != TB_OK) fprintf(stderr, "%s: %s\n", argv[1], diag.text);
  return rc == TB_OK ? 0 : 1;
}
