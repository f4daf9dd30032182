/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a stack's frames for people. */
#ifndef TK_REPORT_FRAME_TEXT_H
#define TK_REPORT_FRAME_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/report.pb-c.h"

/* Formats "http.(*conn).serve  server.go:2043", or "fsync" if there is no file. Control characters are kept: the caller replaces them. */
void tk_frame_text(const Tracecollect__V1__Frame *frame, char *out, size_t out_bytes);
/* Returns true for frames of the runtime or below, which are not the program's own code. */
bool tk_frame_is_plumbing(const Tracecollect__V1__Frame *frame);
/* Returns the innermost frame of the program's own code, or the innermost of all if there is none; NULL: no frames. */
const Tracecollect__V1__Frame *tk_frame_own(Tracecollect__V1__Frame *const *frames, size_t n);
/* tk_frame_own() for a value's stack in a report. */
const Tracecollect__V1__Frame *tk_frame_own_of(const Tracecollect__V1__Report *r,
                                               const Tracecollect__V1__Value *stack);

#endif
