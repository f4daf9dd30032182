/* SPDX-License-Identifier: Apache-2.0 */
/* What the probes that we ship share. */
#ifndef TA_CALL_H
#define TA_CALL_H

#include "traceprobe.h"

/* The arguments alone, `who="JP" n=3` with a space between; cut to fit. */
size_t ta__call_args(const struct ta_call *call, const char *between, char *out, size_t bytes);

#endif
