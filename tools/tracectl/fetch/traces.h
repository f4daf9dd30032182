/* SPDX-License-Identifier: Apache-2.0 */
/* Archived generations that a selector matches, as traces in files that have no name and go with the program: one for each
 * run without a hole of each stream, generations of open runs included.
 *
 * Errors    the client's and those of tk_fetch_piece(); TB_NOTFOUND, TB_BROKEN: nothing matches, or too much does; diag says
 *           which. TB_IO: a temporary file.
 */
#ifndef TK_FETCH_TRACES_H
#define TK_FETCH_TRACES_H

#include <stdio.h>

#include "tools/tracectl/args/selector.h"
#include "tools/tracectl/remote/client.h"

struct tk_fetched {
  FILE *file;
  char path[48]; /* opens it, as long as file is open */
  uint64_t first_gen, last_gen;
  char *stream; /* SERVICE/INSTANCE/HEX */
};

struct tk_fetched_traces {
  struct tk_fetched *trace; /* by stream, then by generation */
  size_t n, room;
  uint64_t generations, bytes, streams, missing; /* missing: generations in holes */
};

/* What several streams match; whole archives only if is_all says so. */
TB_MUST tb_rc tk_fetch_traces(struct tk_client *client, const struct tk_selector *selector,
                              bool is_all, bool progress, struct tb_diag *diag,
                              struct tk_fetched_traces *out);
/* Of one stream, as fetch/choose.h takes it for the verb, what lies behind the last hole. */
TB_MUST tb_rc tk_fetch_last(struct tk_client *client, const char *verb,
                            const struct tk_selector *selector, bool progress,
                            struct tb_diag *diag, struct tk_fetched_traces *out);
void tk_fetched_fini(struct tk_fetched_traces *traces);

#endif
