/* SPDX-License-Identifier: Apache-2.0 */
/* Tracepoints as sources declare them, in comments of a line each:
 *
 *   //trace:event traceHello(const char *who)        an event, and the function that signals it
 *   //trace:event scheduling workerStart(int n)      a scheduling event: only these end with Start, Stop, Create, ...
 *   //trace:import "hello"                           another module's events, from its hello.trace.h
 *   //trace:include "job.h"                          a header for the types of parameters
 *   //trace:module hello                             the events' module; written by gen itself
 *
 * A space after the slashes is allowed: clang-format puts one there.
 *
 * Memory    everything is in the set's arena until tk_points_fini().
 * Errors    faults of a source are printed on stderr as `FILE:LINE: error: what`, and counted; reading continues, so that
 *           one run shows all. TB_NOMEM, TB_IO (diag) end it.
 */
#ifndef TK_TRACEPOINTS_POINTS_H
#define TK_TRACEPOINTS_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"

enum { TK_PARAMS_MAX = 16, TK_NAME_BYTES_MAX = 100 };

struct tk_param {
  const char *type, *name;
};

struct tk_point {
  struct tk_point *next;
  const char *module, *name, *file;
  unsigned line;
  bool scheduling;
  unsigned n;
  struct tk_param param[TK_PARAMS_MAX];
};

/* An import, or an include. */
struct tk_wanted {
  struct tk_wanted *next;
  const char *what; /* with the quotes or brackets of an include */
  const char *file;
  unsigned line;
};

struct tk_points {
  struct tb_arena arena;
  struct tk_point *first, **end;
  struct tk_wanted *imports, **imports_end;
  struct tk_wanted *includes, **includes_end;
  unsigned faults;
};

void tk_points_init(struct tk_points *set);
void tk_points_fini(struct tk_points *set);

/* Adds the declarations of a source. module: the events' module, unless the file names one; may be NULL. */
TB_MUST tb_rc tk_points_read(struct tk_points *set, const char *path, const char *module,
                             struct tb_diag *diag);

/* Checks names: duplicates, a range without its other half, words reserved for scheduling. */
void tk_points_lint(struct tk_points *set);

void tk_points_fault(struct tk_points *set, const char *file, unsigned line, const char *fmt, ...)
    TB_PRINTF(4, 5);

/* Hash of module, name and types: another signature is another event. */
uint32_t tk_point_signature(const struct tk_point *point);
/* "(const char *who, int n)", "(void)". */
void tk_point_params(const struct tk_point *point, struct tb_buf *out);

TB_MUST tb_rc tk_points_text(struct tk_points *set, const char *text, size_t len, const char **out);

#endif
