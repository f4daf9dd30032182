/* SPDX-License-Identifier: Apache-2.0 */
/* The spans of a trace, one by one, for a caller that prefers a loop to a callback.
 *
 *   while ((rc = to_span_pull_next(pull, &span, &gen)) == TB_OK) look_at(span);   -- TB_END: the trace is complete
 *   to_spans_open(to_span_pull_spans(pull), still_open, self);                    -- spans that did not end
 *
 * Memory    from mem: the reader's and the spans' own, and 50 KiB. A span, its texts and its generation are lent until
 *           the next call.
 * Threads   use each object from one thread at a time.
 * Errors    as in online/trace/pull.h, after every span before the fault; as in online/spans/spans.h.
 */
#ifndef TO_SPANS_PULL_H
#define TO_SPANS_PULL_H

#include "online/spans/spans.h"
#include "online/trace/pull.h"

struct to_span_pull;

/* flags: of the reader, online/trace/reader.h. */
TB_MUST tb_rc to_span_pull_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                               const struct to_spans_config *config, struct to_pull_source source,
                               struct tb_diag *diag, struct to_span_pull **out);
void to_span_pull_free(struct to_span_pull *pull); /* accepts NULL */

/* *out_gen: the generation of the event that ended the span. */
TB_MUST tb_rc to_span_pull_next(struct to_span_pull *pull, const struct to_span **out,
                                const struct to_generation **out_gen);
/* Returns the id of the stack that the span's goroutine began with, for to_spans_stack() with its generation; 0: unknown. span: the
 * last one, or an open one. */
uint64_t to_span_pull_begin_stack(const struct to_span_pull *pull, const struct to_span *span);
/* Returns the first fault of annotations, which the reader skips (TO_READER_PAST_ANNOTATIONS); NULL: none so far. */
const struct tb_diag *to_span_pull_misannotated(const struct to_span_pull *pull);
/* Returns the spans, for to_spans_stack() and to_spans_open(). */
struct to_spans *to_span_pull_spans(struct to_span_pull *pull);

#endif
