/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a trace that shows something: the command that fetches it, and the paths of the collector's pages for it, the same for an
 * alert and for the finding that is kept. Each has a quarter of its length before and after, at most ten seconds.
 *
 * Threads   any. */
#ifndef TC_FINDINGS_PART_H
#define TC_FINDINGS_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/names.h"

enum {
  TC_PART_FETCH_BYTES = 320,
  TC_PART_PATH_BYTES = 224,
  TC_WHY_BYTES = 64,
  TC_PART_S = 30,
  TC_PART_LEAK_S = 90, /* a report finds a leak after at most 70 s */
};

struct tc_part {
  unsigned char stream[TC_STREAM_BYTES];
  const char *service;
  uint64_t gen;
  uint64_t from_ns, until_ns; /* wall clock of the traced program; until_ns 0: unknown */
  int64_t goroutine; /* pinned on the timeline; 0 or less: the one of why, if there is one */
  const char
      *why; /* what is explained, a query of /api/v1/why: "task=97"; "" or NULL: nothing is */
};

/* Sets the times; of a long one the end, TC_PART_S seconds. A leak's are always the last TC_PART_LEAK_S seconds, so that a report of them
 * finds it. */
void tc_part_times(struct tc_part *part, bool is_leak, uint64_t from_ns, uint64_t until_ns);

/* A part without times is fetched by its generation. Not quoted: HELLO admits only names that are safe in a shell. */
void tc_part_fetch(const struct tc_part *part, char out[TC_PART_FETCH_BYTES]);
/* Paths; "" if there is none. */
void tc_part_timeline(const struct tc_part *part, char out[TC_PART_PATH_BYTES]);
void tc_part_why(const struct tc_part *part, char out[TC_PART_PATH_BYTES]);

/* Write a why: a task; or what a goroutine did at a moment of the trace's clock. */
void tc_why_task(uint64_t task, char out[TC_WHY_BYTES]);
void tc_why_moment(int64_t goroutine, int64_t ns, char out[TC_WHY_BYTES]);

#endif
