/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the files of `tracectl tracepoints gen`: MODULE.trace.h, which the module's sources include, MODULE.trace.c, which is
 * compiled into it, and MODULE.trace.spec, from which readers are made.
 *
 * Errors    those of stdio stay in the file, for the caller that closes it.
 */
#ifndef TK_TRACEPOINTS_WRITE_H
#define TK_TRACEPOINTS_WRITE_H

#include <stdio.h>

#include "tools/tracepoints/points.h"

/* imported: of other modules, in the order of their imports. */
void tk_points_write_header(FILE *out, const char *module, const struct tk_points *own,
                            const struct tk_points *imported);
void tk_points_write_source(FILE *out, const char *module, const struct tk_points *own,
                            const struct tk_points *imported);

/* Writes the events as events of an experiment (wire/experiments.h), which ta_record_event_attach() records. quoted:
 * as a C string. Events whose name, or module's name, is too long are left out. */
void tk_points_write_spec(FILE *out, const char *module, const struct tk_points *own, bool quoted);
bool tk_point_is_event(const char *module, const struct tk_point *point);

#endif
