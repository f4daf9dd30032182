/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of spans, grouped by metric and key, with one sample for each generation: the input of a comparison.
 *
 * A row is one metric of one key: `sched` of goroutines that began in main.serve, `tasks` of the type checkout; the key "" is the whole
 * metric. Lengths are counted in the buckets of online/window/histogram.h at TK_DIFF_SCALE. Above TK_SAMPLES_MAX generations are joined
 * two by two.
 *
 * Memory    the C library's: 4 KiB a row, 9 KiB more while a generation has spans of it, and 8 bytes for each bucket in use of each
 *           sample. Above TK_ROWS_MAX rows a new key only counts in "".
 */
#ifndef TK_DIFF_SAMPLES_H
#define TK_DIFF_SAMPLES_H

#include "base/map.h"
#include "online/window/histogram.h"
#include "tools/tracectl/query/pass.h"

/* METRIC(id, name, meaning of its key, about) */
#define TK_DIFF_METRICS(METRIC)                                                                    \
  METRIC(SCHED, "sched", "entry", "waits of runnable goroutines for a P")                          \
  METRIC(RUNNING, "running", "entry", "stretches in which goroutines ran")                         \
  METRIC(BLOCK, "block", "reason at place", "waits, idle ones left out")                           \
  METRIC(SYSCALL, "syscall", "place", "system calls, idle ones left out")                          \
  METRIC(STW, "stw", "reason", "stop-the-world pauses")                                            \
  METRIC(GC, "gc", "phase", "phases of the garbage collector, assists among them")                 \
  METRIC(TASK, "tasks", "type", "tasks")                                                           \
  METRIC(REGION, "regions", "type", "regions")

enum tk_diff_metric {
#define METRIC(id, name, key, about) TK_DIFF_##id,
  TK_DIFF_METRICS(METRIC)
#undef METRIC
      TK_DIFF_METRIC_COUNT
};
const char *tk_diff_metric_name(enum tk_diff_metric metric);
/* Returns false if there is no such metric. */
bool tk_diff_metric_find(const char *name, size_t len, enum tk_diff_metric *out);

enum {
  TK_SAMPLES_MAX = 256,
  TK_ROWS_MAX = 4096,
  TK_DIFF_SCALE = 5, /* enough places for all lengths, in one table */
  TK_DIFF_PLACES = TO_PLACES >> (TO_SCALE_MAX - TK_DIFF_SCALE),
};

struct tk_bucket_count {
  uint16_t sample, place; /* at TK_DIFF_SCALE */
  uint32_t count;
};

struct tk_diff_row {
  enum tk_diff_metric metric;
  char *key;
  uint64_t count[TK_SAMPLES_MAX], total_ns[TK_SAMPLES_MAX];
  struct tk_bucket_count *bucket;
  size_t buckets, room;
  uint32_t *now; /* by place, of the current generation; NULL: empty so far */
};

struct tk_samples {
  struct tk_diff_row **row;
  size_t rows, room;
  struct tb_map by_key;
  unsigned samples, shift; /* a sample is 2^shift generations */
  uint64_t generations;
  uint64_t ns[TK_SAMPLES_MAX]; /* length of each sample */
};

bool tk_samples_read(struct tk_samples *samples, const struct tk_place *place,
                     char error[TK_QUERY_ERROR]);
void tk_samples_init(struct tk_samples *samples);
void tk_samples_fini(struct tk_samples *samples);
/* Returns NULL if there are no spans of it. */
const struct tk_diff_row *tk_samples_find(const struct tk_samples *samples,
                                          enum tk_diff_metric metric, const char *key);

#endif
