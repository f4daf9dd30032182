/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches archived generations that a selector matches into unnamed temporary files: one for each run without a hole of each
 * stream, including open runs.
 *
 * Errors    the client's and those of tk_fetch_piece(); TB_NOTFOUND, TB_BROKEN: nothing, or too much, matches; diag has the
 *           reason. TB_IO: a temporary file.
 */
#ifndef TK_FETCH_TRACES_H
#define TK_FETCH_TRACES_H

#include <stdio.h>

#include "tools/tracectl/args/selector.h"
#include "tools/tracectl/remote/client.h"

struct tk_fetched {
  FILE *file;
  char path[48]; /* opens the file while `file` is open */
  uint64_t first_gen, last_gen;
  char *stream; /* SERVICE/INSTANCE/HEX */
};

struct tk_fetched_traces {
  struct tk_fetched *trace; /* by stream, then by generation */
  size_t n, room;
  uint64_t generations, bytes, streams, missing; /* missing: generations in holes */
};

/* Fetches all streams that match. is_all allows a whole archive. */
TB_MUST tb_rc tk_fetch_traces(struct tk_client *client, const struct tk_selector *selector,
                              bool is_all, bool progress, struct tb_diag *diag,
                              struct tk_fetched_traces *out);
/* Fetches what follows the last hole of one stream, chosen as in fetch/choose.h. */
TB_MUST tb_rc tk_fetch_last(struct tk_client *client, const char *verb,
                            const struct tk_selector *selector, bool progress, struct tb_diag *diag,
                            struct tk_fetched_traces *out);
void tk_fetched_fini(struct tk_fetched_traces *traces);

#endif
