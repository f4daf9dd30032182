/* SPDX-License-Identifier: Apache-2.0 */
/* Files that appear whole or not at all: written under temporary names, and renamed together at the end.
 * "-", and files that are not regular (a pipe, /dev/null), are written directly.
 *
 * ^C removes unfinished files and ends the program with TK_INTERRUPTED.
 *
 * Errors    TB_IO with path and reason in diag.
 */
#ifndef TK_TERM_OUT_FILE_H
#define TK_TERM_OUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/result.h"

enum { TK_OUT_FILES_MAX = 256 };

struct tk_out_set;

TB_MUST tb_rc tk_out_new(struct tb_diag *diag, struct tk_out_set **out);
void tk_out_free(struct tk_out_set *set); /* removes what was not published */

/* Begins the next file; ends the previous one. */
TB_MUST tb_rc tk_out_begin(struct tk_out_set *set, const char *path, struct tb_diag *diag,
                           FILE **out);
/* Ends the last file and renames all. */
TB_MUST tb_rc tk_out_publish(struct tk_out_set *set, struct tb_diag *diag);

/* Is the file a trace? Then a verb that writes other files takes its name for a slip. */
bool tk_out_is_trace(const char *path);
/* Are both the same file? */
bool tk_out_is_same(const char *path, const char *other);

#endif
