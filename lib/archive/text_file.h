/* SPDX-License-Identifier: Apache-2.0 */
/* A small list as a text file of the state folder, written as a whole when it has changed: a line an item. It is of use, and not
 * needed: where the disk has lost it the list begins empty.
 *
 *     tc_text_file_changed(&list->file);                      -- with each change, under the list's own lock
 *     tc_text_file_save(&list->file, list, print, diag);      -- now and then; print takes that lock
 *
 * Threads   any, but for open and fini.
 */
#ifndef TC_ARCHIVE_TEXT_FILE_H
#define TC_ARCHIVE_TEXT_FILE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"

struct tc_text_file {
  int dir_fd; /* the caller's */
  const char *name;
  size_t bytes_max;
  pthread_mutex_t saving;   /* one writes the file at a time */
  _Atomic uint64_t version; /* of what there is */
  uint64_t saved;           /* of what the file has, at least */
};

/* read gets each line, and answers whether it is one of an item: *out_wrong, cleared first, names the first that is not, or says why
 * all of the file is lost. Errors: TB_IO, TB_NOMEM, and read's. */
TB_MUST tb_rc tc_text_file_open(struct tc_text_file *file, int dir_fd, const char *name,
                                size_t bytes_max, void *self,
                                tb_rc (*read)(void *self, const char *line, bool *out_is_one),
                                struct tb_diag *diag, struct tb_diag *out_wrong);
void tc_text_file_fini(struct tc_text_file *file); /* whatever open answered */

void tc_text_file_changed(struct tc_text_file *file);
/* Nothing to do where nothing has changed. Errors: TB_IO, TB_NOMEM, TB_BUDGET; it is tried again with the next call. */
TB_MUST tb_rc tc_text_file_save(struct tc_text_file *file, void *self,
                                void (*print)(void *self, struct tb_buf *out),
                                struct tb_diag *diag);

#endif
