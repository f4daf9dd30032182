/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the files of archive/ by day, stream and name. A day's ledger comes before its streams, with stream_hex "".
 *
 * If a folder below archive/ cannot be opened or listed completely, unread() is called and the walk continues.
 *
 * Errors    TB_NOMEM; tc_errno_rc() for archive/ itself and, if unread is NULL, for folders below it; codes of each().
 */
#ifndef TC_ARCHIVE_WALK_H
#define TC_ARCHIVE_WALK_H

#include "archive/state_dir.h"

struct tc_archive_file {
  int dir_fd; /* folder of the file */
  const char *day, *stream_hex, *name;
  char path[192]; /* relative to the state folder */
};

typedef tb_rc tc_archive_file_fn(void *self, const struct tc_archive_file *file);
typedef void tc_archive_unread_fn(void *self, const char *text); /* "FOLDER: reason" */

TB_MUST tb_rc tc_archive_walk(int archive_fd, tc_archive_file_fn *each,
                              tc_archive_unread_fn *unread, void *self, struct tb_diag *diag);
/* Continues after the file that place names (empty: from the first file on). A code other than TB_OK from each ends the
 * walk. place is set to the last file for which each returned TB_OK or TB_AGAIN. */
struct tc_archive_place {
  char day[16], stream_hex[64], name[96];
};
TB_MUST tb_rc tc_archive_walk_from(int archive_fd, struct tc_archive_place *place,
                                   tc_archive_file_fn *each, tc_archive_unread_fn *unread,
                                   void *self, struct tb_diag *diag);
/* Walks one stream, without reading folders of others. */
TB_MUST tb_rc tc_archive_walk_stream(int archive_fd, const char *stream_hex,
                                     tc_archive_file_fn *each, tc_archive_unread_fn *unread,
                                     void *self, struct tb_diag *diag);

bool tc_name_ends(const char *name, const char *end);

#endif
