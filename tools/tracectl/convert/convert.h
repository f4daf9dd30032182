/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as one timeline in a file of another tool's format. */
#ifndef TK_CONVERT_CONVERT_H
#define TK_CONVERT_CONVERT_H

#include "tools/tracectl/convert/format.h"

/* Returns NULL if there is no such format. */
const struct tk_format *tk_format_find(const char *name);

struct tk_convert_ask {
  const struct tk_format *format;
  struct tk_format_options options;
  const struct tk_place *place;
  size_t n;
  bool is_remote;
  const char *path; /* output file, unless options have a URL; "-": standard output */
};

/* Returns an enum tk_exit; errors are printed. What precedes a fault of a trace is written. */
int tk_convert(const struct tk_convert_ask *ask);

#endif
