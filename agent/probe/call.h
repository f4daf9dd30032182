/* SPDX-License-Identifier: Apache-2.0 */
/* What the probes that we ship share. */
#ifndef TA_CALL_H
#define TA_CALL_H

#include "traceprobe.h"

/* The arguments alone, `who="JP" n=3` with a space between; cut to fit. */
size_t ta__call_args(const struct ta_call *call, const char *between, char *out, size_t bytes);

/* A number as C writes it, whatever the host's locale puts between its digits. */
enum { TA_REAL_BYTES = 40 };
void ta__real_text(double real, char out[TA_REAL_BYTES]);
/* The first run of what stands in no number, as one point. */
void ta__point(char *number);

#endif
