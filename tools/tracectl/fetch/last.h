/* SPDX-License-Identifier: Apache-2.0 */
/* The newest generations that a selector matches, as one trace in a file that has no name and goes with the program: what
 * lies behind the last hole, whole or still in an open run.
 *
 * Errors    the client's and those of tk_fetch_piece(); TB_NOTFOUND, TB_BROKEN: nothing matches, or several streams do; diag
 *           says which. TB_IO: the temporary file.
 */
#ifndef TK_FETCH_LAST_H
#define TK_FETCH_LAST_H

#include <stdio.h>

#include "tools/tracectl/args/selector.h"
#include "tools/tracectl/remote/client.h"

struct tk_last {
  FILE *file;
  char path[48]; /* opens it, as long as file is open */
  uint64_t first_gen, last_gen;
  char stream[160]; /* "--service S --instance I --stream HEX" */
};

TB_MUST tb_rc tk_fetch_last(struct tk_client *client, const struct tk_selector *selector,
                            bool progress, struct tb_diag *diag, struct tk_last *out);
void tk_last_close(struct tk_last *last);

#endif
