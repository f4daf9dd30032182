/* SPDX-License-Identifier: Apache-2.0 */
/* Every file of archive/, by day, stream and name; a day's ledger before its streams, with "" for a stream.
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
  int dir_fd; /* the stream's folder of that day; the day's */
  const char *day, *stream_hex, *name;
  char path[192]; /* below the state folder */
};

typedef tb_rc tc_archive_file_fn(void *self, const struct tc_archive_file *file);
typedef void tc_archive_unread_fn(void *self, const char *text); /* "FOLDER: reason" */

TB_MUST tb_rc tc_archive_walk(int archive_fd, tc_archive_file_fn *each,
                              tc_archive_unread_fn *unread, void *self, struct tb_diag *diag);
/* Goes on behind the file that place names; "" : from the first one on. A code other than TB_OK from each ends the walk
 * before it is on the next one, and place names the last one for which it was TB_OK, or TB_AGAIN. */
struct tc_archive_place {
  char day[16], stream_hex[64], name[96];
};
TB_MUST tb_rc tc_archive_walk_from(int archive_fd, struct tc_archive_place *place,
                                   tc_archive_file_fn *each, tc_archive_unread_fn *unread,
                                   void *self, struct tb_diag *diag);
/* Those of one stream: no other's folder is looked at. */
TB_MUST tb_rc tc_archive_walk_stream(int archive_fd, const char *stream_hex,
                                     tc_archive_file_fn *each, tc_archive_unread_fn *unread,
                                     void *self, struct tb_diag *diag);

bool tc_name_ends(const char *name, const char *end);

#endif
