/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the probes that we ship. */
#ifndef TA_CALL_H
#define TA_CALL_H

#include "traceprobe.h"

/* The arguments alone, `who="JP" n=3` with a space between; cut to fit. */
size_t ta__call_args(const struct ta_call *call, const char *between, char *out, size_t bytes);

/* The same of those from the one of that number on. */
size_t ta__call_args_from(const struct ta_call *call, unsigned first, const char *between,
                          char *out, size_t bytes);

/* Within a probe: where its thread is. */
const struct ta_passing *ta__passing(void);

/* A number as C writes it, whatever the host's locale puts between its digits. */
enum { TA_REAL_BYTES = 40 };
void ta__real_text(double real, char out[TA_REAL_BYTES]);
/* The first run of what stands in no number, as one point. */
void ta__point(char *number);

#endif
