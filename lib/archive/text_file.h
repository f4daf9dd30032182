/* SPDX-License-Identifier: Apache-2.0 */
/* A small list as a text file of the state folder, an item per line. The whole file is written after a change. If the disk
 * has lost the file, the list begins empty.
 *
 *     tc_text_file_changed(&list->file);                      -- after each change, under the list's own lock
 *     tc_text_file_save(&list->file, list, print, diag);      -- now and then; print takes that lock
 *
 * Threads   any, except for open and fini.
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
  pthread_mutex_t saving;   /* one thread writes the file at a time */
  _Atomic uint64_t version; /* of the list in memory */
  uint64_t saved;           /* of the list in the file, at least */
};

/* Passes each line to read, which sets *out_is_one to false if the line is not an item. *out_wrong (cleared first) names the
 * first such line, or the reason why the whole file is lost. Errors: TB_IO, TB_NOMEM, and those of read. */
TB_MUST tb_rc tc_text_file_open(struct tc_text_file *file, int dir_fd, const char *name,
                                size_t bytes_max, void *self,
                                tb_rc (*read)(void *self, const char *line, bool *out_is_one),
                                struct tb_diag *diag, struct tb_diag *out_wrong);
void tc_text_file_fini(struct tc_text_file *file); /* required after a failed open, too */

void tc_text_file_changed(struct tc_text_file *file);
/* Writes the file if the list has changed. Errors: TB_IO, TB_NOMEM, TB_BUDGET; the next call tries again. */
TB_MUST tb_rc tc_text_file_save(struct tc_text_file *file, void *self,
                                void (*print)(void *self, struct tb_buf *out),
                                struct tb_diag *diag);

#endif
