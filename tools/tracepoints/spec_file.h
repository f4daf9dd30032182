/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a spec of experiments (wire/experiments.h), in the form that a program registers: without numbers.
 *
 * Errors    reported on stderr as "tracectl tracepoints: FILE: line N: reason".
 */
#ifndef TK_TRACEPOINTS_SPEC_FILE_H
#define TK_TRACEPOINTS_SPEC_FILE_H

#include "wire/experiments.h"

/* Free with free(). Returns NULL after reporting an error. */
struct tw_experiments *tk_spec_file_read(const char *path);

#endif
