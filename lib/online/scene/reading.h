/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one generation alone and reports its spans, then the open ones. For scene.c, moment.c and state.c. */
#ifndef TO_SCENE_READING_H
#define TO_SCENE_READING_H

#include "online/scene/source.h"
#include "online/spans/spans.h"

struct to_reading {
  struct to_spans *spans; /* for stacks; valid from the first span on */
  uint64_t gen;
  to_ns from, until; /* lower bound of all events; time of the last event */
  bool has_clock;
  struct to_clock clock;
  /* Private: */
  const struct to_scene_source *source;
  struct to_reader *reader;
};

TB_MUST tb_rc to__reading_run(struct to_reading *reading, struct tb_mem *mem,
                              const struct to_scene_source *source,
                              const struct to_spans_config *config, struct to_span_sink sink,
                              tb_rc (*open)(void *self, const struct to_span *span),
                              struct tb_diag *diag);
/* Returns true if the span contains the moment; an open span contains its end, too. */
bool to__span_holds(const struct to_span *span, to_ns at);
/* Returns NULL if the stack is unknown or empty. */
const struct to_callstack *to__reading_calls(const struct to_reading *reading, uint32_t stack);
void to__reading_fini(struct to_reading *reading); /* accepts a zeroed one */

#endif
