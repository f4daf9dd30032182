/* SPDX-License-Identifier: Apache-2.0 */
/* Every file of archive/, by day, stream and name.
 *
 * Errors    those of tc_errno_rc(); what the callback answers.
 */
#ifndef TC_ARCHIVE_WALK_H
#define TC_ARCHIVE_WALK_H

#include "collector/statedir.h"

struct tc_archive_file {
  int dir_fd; /* the stream's folder of that day */
  const char *day, *stream_hex, *name;
  char path[192]; /* below the state folder */
};

typedef tb_rc tc_archive_file_fn(void *self, const struct tc_archive_file *file);

TB_MUST tb_rc tc_archive_walk(int archive_fd, tc_archive_file_fn *each, void *self,
                              struct tb_diag *diag);

bool tc_name_ends(const char *name, const char *end);

#endif
