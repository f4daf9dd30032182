/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the files of an archive with a file a generation to runs, as a collector writes them now: fewer files, and
 * content hashes that a restart and a fetch of one generation need not make again.
 *
 * A folder of a stream and a day is made anew beside the archive, in upgrade/, from copies of what is joined and links to
 * the rest, and takes the old one's place in one step. So it may be killed at any moment: a folder is as it was, or as it
 * will be. What a segment's own hash says is checked before it is copied; one that is damaged, signed, broken or not
 * followed by the next generation stays as it is, with a problem where it is damaged.
 *
 * Memory    the metas of one folder, and 1 MiB.
 * Errors    TB_REFUSED: a collector has the folder, it is another user's, or the disk cannot exchange two folders. Others: as the disk says.
 */
#ifndef TC_ARCHIVE_UPGRADE_H
#define TC_ARCHIVE_UPGRADE_H

#include "archive/audit.h"

struct tc_upgraded {
  uint64_t folders, segments, runs; /* that were changed; joined; made of them */
  uint64_t bytes;                   /* of these */
  uint64_t problems;
};

enum { TC_UPGRADE_YOUNG_MAX = 7 };

/* Of the newest days, so many stay as they are, at most TC_UPGRADE_YOUNG_MAX: a collector that was killed looks for what it
 * published last under its own name. sink: progress counts what was read. The catalog is made again at the end. */
TB_MUST tb_rc tc_upgrade(int state_fd, unsigned young_days, const struct tc_audit_sink *sink,
                         struct tb_diag *diag, struct tc_upgraded *out);

#endif
