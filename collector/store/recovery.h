/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a start before the threads run: reads the log, rebuilds the stream table, and replays records that are in no
 * published segment into the sealer. Changes nothing before all of the log is read and on the disk as it was read.
 *
 * A start may be killed at any point and repeated: .part files are rebuilt each time, and a segment that was published
 * just before a crash is recognized by its meta. */
#ifndef TC_STORE_RECOVERY_H
#define TC_STORE_RECOVERY_H

#include "collector/commit/thread.h"

struct tc_recovered {
  uint64_t records;                        /* replayed into the sealer */
  uint64_t corrupt;                        /* damaged places in the log */
  uint64_t torn_bytes;                     /* of the last group, never acked */
  uint64_t unreadable;                     /* number of failed reads of a block of the log */
  uint64_t unreadable_file, unreadable_at; /* the first one */
  bool had_log;
};

TB_MUST tb_rc tc_recover(struct tc_commit *commit, struct tc_sealer *sealer,
                         const struct tc_statedir *dirs, unsigned loops, struct tb_diag *diag,
                         struct tc_recovered *out);

#endif
