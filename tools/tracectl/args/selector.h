/* SPDX-License-Identifier: Apache-2.0 */
/* Selects a part of the archive: a segment id, or --service, --instance, --stream, --since, --until, --last, --gen A..B. Zeroed
 * fields do not restrict.
 *
 * Memory    strings are lent from argv.
 * Errors    TB_BROKEN with the reason in diag: a usage error.
 */
#ifndef TK_ARGS_SELECTOR_H
#define TK_ARGS_SELECTOR_H

#include "proto/archive.pb-c.h"
#include "tools/tracectl/args/options.h"

struct tk_selector {
  uint64_t segment;
  const char *service, *instance;
  unsigned char stream[16];
  bool has_stream;
  char stream_prefix
      [33]; /* the first digits of the id, until remote/names.h finds the stream; "": stream has it */
  uint64_t since_wall_ns, until_wall_ns, last_ns;
  uint64_t since_arrival_ns; /* not an option; for verbs */
  uint64_t first_gen, last_gen;
};

/* Rows for a verb's table; the field is a struct tk_selector. */
extern const struct tk_option tk_stream_options[];   /* --service, --instance, --stream */
extern const struct tk_option tk_time_options[];     /* --since, --until */
extern const struct tk_option tk_selector_options[]; /* all of these, --last and --gen */
tk_read_fn tk_read_generations;                      /* struct tk_selector */

/* Return true if streams, or a part of their generations, are selected. */
bool tk_selector_names_streams(const struct tk_selector *selector);
bool tk_selector_is_part(const struct tk_selector *selector);
/* A segment's id, given as an argument. */
TB_MUST tb_rc tk_selector_segment(struct tk_selector *selector, const char *text,
                                  struct tb_diag *diag);
/* Checks that bounds are in order, and that a segment's id is alone. Call once after all
 * options. */
TB_MUST tb_rc tk_selector_check(const struct tk_selector *selector, struct tb_diag *diag);

/* Fills in the message, which points into selector. */
void tk_selector_message(const struct tk_selector *selector, Tracecollect__V1__Selector *out);

#endif
