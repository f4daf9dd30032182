/* SPDX-License-Identifier: Apache-2.0 */
/* A file that says what experiments are (wire/experiments.h), as a program registers them: without numbers.
 *
 * Errors    reported on stderr as "tracectl tracepoints: FILE: line N: reason".
 */
#ifndef TK_TRACEPOINTS_SPEC_FILE_H
#define TK_TRACEPOINTS_SPEC_FILE_H

#include "wire/experiments.h"

/* Freed with free(). NULL: reported. */
struct tw_experiments *tk_spec_file_read(const char *path);

#endif
