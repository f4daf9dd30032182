/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of the archive a verb is about: a segment id, or --service, --instance, --stream,
 * --since, --until, --last, --gen A..B. Zeroed fields do not restrict.
 *
 * A verb puts TK_SELECTOR_OPTIONS into its getopt_long() table and hands each option it does not know
 * to tk_selector_option().
 *
 * Memory    strings are lent from argv.
 * Errors    TB_BROKEN with the reason in diag: a usage error.
 */
#ifndef TK_ARGS_SELECTOR_H
#define TK_ARGS_SELECTOR_H

#include "base/result.h"
#include "proto/archive.pb-c.h"

enum {
  TK_OPT_SERVICE = 0x1100,
  TK_OPT_INSTANCE,
  TK_OPT_STREAM,
  TK_OPT_SINCE,
  TK_OPT_UNTIL,
  TK_OPT_LAST,
  TK_OPT_GEN,
};

#define TK_SELECTOR_STREAM_OPTIONS                                                                 \
  { "service", required_argument, NULL, TK_OPT_SERVICE },                                          \
      { "instance", required_argument, NULL, TK_OPT_INSTANCE }, {                                  \
    "stream", required_argument, NULL, TK_OPT_STREAM                                               \
  }
#define TK_SELECTOR_TIME_OPTIONS                                                                   \
  { "since", required_argument, NULL, TK_OPT_SINCE }, {                                            \
    "until", required_argument, NULL, TK_OPT_UNTIL                                                 \
  }
#define TK_SELECTOR_OPTIONS                                                                        \
  TK_SELECTOR_STREAM_OPTIONS, TK_SELECTOR_TIME_OPTIONS,                                            \
      { "last", required_argument, NULL, TK_OPT_LAST }, {                                          \
    "gen", required_argument, NULL, TK_OPT_GEN                                                     \
  }

#define TK_SELECTOR_HELP                                                                           \
  "  --service S, --instance I      of these names\n"                                              \
  "  --stream HEX                   of this stream\n"                                              \
  "  --since T, --until T           traced then, by the program's own clock: RFC 3339, -5m, now\n" \
  "                                 or @UNIX; generations that reach into it\n"                    \
  "  --last SPAN                    the stream's newest 30s, 5m, 1h\n"                             \
  "  --gen A..B                     generations by number; A.. and ..B are open\n"

struct tk_selector {
  uint64_t segment;
  const char *service, *instance;
  unsigned char stream[16];
  bool has_stream;
  uint64_t since_wall_ns, until_wall_ns, last_ns;
  uint64_t since_arrival_ns; /* for a verb's own use: no option sets it */
  uint64_t first_gen, last_gen;
};

/* TB_OK: taken. TB_NOTFOUND: not a selector's option, diag untouched. */
TB_MUST tb_rc tk_selector_option(struct tk_selector *selector, int option, const char *value,
                                 struct tb_diag *diag);
/* The value of --goroutine. */
TB_MUST tb_rc tk_selector_goroutine(const char *text, uint64_t *out, struct tb_diag *diag);
/* A segment's id, given as an argument. */
TB_MUST tb_rc tk_selector_segment(struct tk_selector *selector, const char *text,
                                  struct tb_diag *diag);
/* Bounds in order, and an id alone. Call it once after all options. */
TB_MUST tb_rc tk_selector_check(const struct tk_selector *selector, struct tb_diag *diag);

/* The message, pointing into selector. */
void tk_selector_message(const struct tk_selector *selector, Tracecollect__V1__Selector *out);

#endif
