/* SPDX-License-Identifier: Apache-2.0 */
/* A stack's frames as people read them. */
#ifndef TK_REPORT_FRAME_TEXT_H
#define TK_REPORT_FRAME_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/report.pb-c.h"

/* "http.(*conn).serve  server.go:2043", or "fsync" where the trace has no file; control characters kept: they are the caller's to replace. */
void tk_frame_text(const Tracecollect__V1__Frame *frame, char *out, size_t out_bytes);
/* Of the runtime, or below it: not where the program's own story is. */
bool tk_frame_is_plumbing(const Tracecollect__V1__Frame *frame);
/* The innermost frame that is the program's own; the innermost of all where there is none; NULL: no frames. */
const Tracecollect__V1__Frame *tk_frame_own(Tracecollect__V1__Frame *const *frames, size_t n);
/* The same of a value's stack in a report. */
const Tracecollect__V1__Frame *tk_frame_own_of(const Tracecollect__V1__Report *r,
                                               const Tracecollect__V1__Value *stack);

#endif
