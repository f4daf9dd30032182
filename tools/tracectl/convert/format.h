/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of a timeline. Each is a sink with a file.
 *
 * Memory    each name and stack that was written, once.
 * Errors    TB_NOMEM, TB_IO: see errno.
 */
#ifndef TK_CONVERT_FORMAT_H
#define TK_CONVERT_FORMAT_H

#include <stdio.h>

#include "tools/tracectl/convert/walk.h"

/* Measure of a collapsed stack. */
enum tk_stacks_of {
  TK_STACKS_OF_SAMPLES,
  TK_STACKS_OF_WAITING,
  TK_STACKS_OF_RUNNABLE,
  TK_STACKS_OF_SYSCALL
};

struct tk_format_options {
  enum tk_stacks_of stacks;
  const char *url;      /* otlp, otlp-metrics: posted there instead of written; NULL: none */
  struct tb_diag *diag; /* the reason, if errno has none */
};

struct tk_format {
  const char *name, *about;
  size_t bytes; /* of its state, zeroed */
  tb_rc (*open)(void *self, FILE *file, const struct tk_format_options *options);
  tb_rc (*begin)(void *self, const struct tk_stream *stream); /* another trace */
  tb_rc (*span)(void *self, const struct tk_stream *stream, const struct tk_span *at);
  tb_rc (*end)(
      void *self,
      const struct tk_stream *stream); /* of the trace; may be NULL. TB_BROKEN: already reported */
  tb_rc (*close)(void *self);          /* writes what is left */
  void (*fini)(void *self);
};

extern const struct tk_format tk_format_perfetto, tk_format_chrome, tk_format_collapsed,
    tk_format_otlp, tk_format_otlp_metrics;

#endif
