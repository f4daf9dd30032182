/* SPDX-License-Identifier: Apache-2.0 */
/* Every file of archive/, by day, stream and name.
 *
 * A folder below archive/ that cannot be opened, or listed to its end, costs what was not seen in it: unread()
 * is called, and the walk goes on.
 *
 * Errors    TB_NOMEM; those of tc_errno_rc() for archive/ itself, and without unread() for what lies below it; what the
 *           callback answers.
 */
#ifndef TC_ARCHIVE_WALK_H
#define TC_ARCHIVE_WALK_H

#include "archive/state_dir.h"

struct tc_archive_file {
  int dir_fd; /* the stream's folder of that day */
  const char *day, *stream_hex, *name;
  char path[192]; /* below the state folder */
};

typedef tb_rc tc_archive_file_fn(void *self, const struct tc_archive_file *file);
typedef void tc_archive_unread_fn(void *self, const char *text); /* "FOLDER: reason" */

TB_MUST tb_rc tc_archive_walk(int archive_fd, tc_archive_file_fn *each,
                              tc_archive_unread_fn *unread, void *self, struct tb_diag *diag);
/* Those of one stream: no other's folder is looked at. */
TB_MUST tb_rc tc_archive_walk_stream(int archive_fd, const char *stream_hex,
                                     tc_archive_file_fn *each, tc_archive_unread_fn *unread,
                                     void *self, struct tb_diag *diag);

bool tc_name_ends(const char *name, const char *end);

#endif
