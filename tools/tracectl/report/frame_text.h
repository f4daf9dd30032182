/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a stack's frames for people. */
#ifndef TK_REPORT_FRAME_TEXT_H
#define TK_REPORT_FRAME_TEXT_H

#include <stddef.h>

#include "online/spans/stacks/library.h"
#include "proto/report.pb-c.h"

/* Formats "http.(*conn).serve  server.go:2043", or "fsync" if there is no file. Control characters are kept: the caller replaces them. */
void tk_frame_text(const Tracecollect__V1__Frame *frame, char *out, size_t out_bytes);
/* Formats "  (in time.Sleep)", after a frame that called it. word: "in". */
void tk_frame_note(const char *word, const Tracecollect__V1__Frame *frame, char *out,
                   size_t out_bytes);
enum to_code tk_frame_code(const Tracecollect__V1__Frame *frame);
/* Returns the frame that to_callstack_own() would return; NULL: no frames. */
const Tracecollect__V1__Frame *tk_frame_own(Tracecollect__V1__Frame *const *frames, size_t n);
/* tk_frame_own() for a value's stack in a report, and that frame's number. */
const Tracecollect__V1__Frame *tk_frame_own_of(const Tracecollect__V1__Report *r,
                                               const Tracecollect__V1__Value *stack);
size_t tk_frame_find_own(const Tracecollect__V1__Report *r, const Tracecollect__V1__Value *stack);

#endif
