/* SPDX-License-Identifier: Apache-2.0 */
/* getopt_long() whose complaints are ours: "tracectl VERB: no option "--sevice"; did you mean --service?". */
#ifndef TK_ARGS_OPTIONS_H
#define TK_ARGS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* The next option, with optarg and optind as getopt_long() leaves them; -1: none is left. '?': it was wrong, stderr says
 * why, and tk_usage_hint() is to follow. argv[0] is the verb, letters as getopt_long()'s without flags. */
int tk_option_next(int argc, char **argv, const char *letters, const struct option *options);

/* The value of --top: a number of rows, 0 for all. False: it is none, which stderr says. */
bool tk_rows_parse(const char *verb, const char *value, size_t *out);

#endif
