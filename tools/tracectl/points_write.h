/* SPDX-License-Identifier: Apache-2.0 */
/* What `tracectl tracepoints gen` makes of a module's events: MODULE.trace.h, which its sources include, and
 * MODULE.trace.c, which is compiled into it.
 *
 * Errors    those of stdio stay in the file, for whoever closes it.
 */
#ifndef TK_POINTS_WRITE_H
#define TK_POINTS_WRITE_H

#include <stdio.h>

#include "tools/tracectl/points.h"

/* imported: of other modules, in the order of their imports. */
void tk_points_write_header(FILE *out, const char *module, const struct tk_points *own,
                            const struct tk_points *imported);
void tk_points_write_source(FILE *out, const char *module, const struct tk_points *own,
                            const struct tk_points *imported);

#endif
