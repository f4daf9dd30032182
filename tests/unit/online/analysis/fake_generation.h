/* SPDX-License-Identifier: Apache-2.0 */
/* A generation made by hand, for tests that feed ordered events to an analysis without a trace.
 *
 * fake_generation.c takes the place of online/event/generation.c in the test's binary. */
#ifndef TT_UNIT_ANALYSIS_FAKE_GENERATION_H
#define TT_UNIT_ANALYSIS_FAKE_GENERATION_H

#include "online/analysis/analysis.h"
#include "wire/spec.h"

enum { TT_FAKE_STRINGS = 9, TT_FAKE_STACKS = 8, TT_FAKE_STACK_IDS = 72, TT_FAKE_FRAMES = 4 };

/* String ids: 1 to TT_FAKE_STRINGS. Stack ids: 1 to TT_FAKE_STACK_IDS, of which most tests use the first TT_FAKE_STACKS; a
 * stack ends at the first frame without pc. */
struct to_generation {
  uint64_t number;
  const char *string[TT_FAKE_STRINGS + 1];
  struct tt_fake_frame {
    uint64_t pc, line;
    const char *function, *file;
  } stack[TT_FAKE_STACK_IDS + 1][TT_FAKE_FRAMES];
  struct to_clock clock; /* wall_s 0: none */
  const struct to_experimental *experimental;
  size_t experimentals;
};

/* The analyses, and the tb_mem that they use, which a test can read. */
struct tt_analyses {
  struct tb_mem mem;
  struct to_analyses *a;
};
void tt_analyses_open(struct tt_analyses *t, to_ns blocked_after_ns, size_t stacks_max);
/* Closes the analyses, and asserts that every byte is freed. */
void tt_analyses_close(struct tt_analyses *t);

/* Feeds one event and asserts that it is accepted. */
#define TT_FEED(t, gen, ...)                                                                       \
  cr_assert_eq(to_analyses_events((t)->a, (gen), &(struct to_event){ __VA_ARGS__ }, 1), TB_OK)

const struct to_report *tt_report(struct tt_analyses *t, enum to_analysis_kind kind,
                                  enum to_window window);
/* Finds a figure, distribution, table or cell by its name. The test fails if the schema does not have the name. */
const struct to_value *tt_figure(const struct to_report *r, const char *name);
const struct to_distribution *tt_distribution(const struct to_report *r, const char *name);
/* Asserts that the median is this one, within the error that the distribution has. */
void tt_median_is(const struct to_distribution *d, uint64_t ns);
const struct to_table *tt_table(const struct to_report *r, const char *name);
const struct to_value *tt_cell(const struct to_report *r, const char *table, size_t row,
                               const char *column);

#endif
