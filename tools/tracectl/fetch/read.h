/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches one piece of a segment and checks it: each generation or a whole segment by its content hash; a piece without known
 * hashes by a CRC32C for each chunk.
 *
 * Errors    the client's; TB_CORRUPT: the archive's bytes do not match their checksum. TB_IO: file.
 */
#ifndef TK_FETCH_READ_H
#define TK_FETCH_READ_H

#include <stdio.h>

#include "tools/tracectl/fetch/plan.h"
#include "tools/tracectl/remote/client.h"
#include "tools/tracectl/term/progress.h"

struct tk_fetch {
  struct tk_client *client;
  struct tb_diag *diag;
  bool full; /* keep experiments Go's tools cannot read */
  struct tk_progress progress;
  uint64_t done;    /* bytes of pieces read */
  uint64_t written; /* to the current file; reset by the caller */
  uint64_t left_out_batches, left_out_events, left_out_bytes;
};

/* Appends the piece to file, after a trace header if with_header. */
TB_MUST tb_rc tk_fetch_piece(struct tk_fetch *fetch, const struct tk_piece *piece, bool with_header,
                             FILE *file);

#endif
