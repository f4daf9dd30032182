/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the probes that we ship. */
#ifndef TA_CALL_H
#define TA_CALL_H

#include "traceprobe.h"

/* Writes the arguments alone, as `who="JP" n=3` if `between` is a space; cut to fit. Returns the length. */
size_t ta__call_args(const struct ta_call *call, const char *between, char *out, size_t bytes);

/* As ta__call_args(), from argument `first` on. */
size_t ta__call_args_from(const struct ta_call *call, unsigned first, const char *between,
                          char *out, size_t bytes);

/* Call it in a probe: returns the place at which this thread passes the tracepoint. */
const struct ta_passing *ta__passing(void);

/* Writes a number as in the C locale, whatever the host's locale is. */
enum { TA_REAL_BYTES = 40 };
void ta__real_text(double real, char out[TA_REAL_BYTES]);
/* Replaces the first sequence of bytes that no number contains, the locale's decimal point, by a point. */
void ta__point(char *number);

#endif
