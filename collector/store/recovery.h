/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a start before the threads run: reads the log (nothing is changed until all of it is read, and on the
 * disk as it was read), rebuilds the stream table, and replays into the sealer what no published segment holds yet.
 *
 * It may be killed anywhere and begun again: .part files are made again each time, a segment that was
 * published without the log knowing is recognised by its meta.
 */
#ifndef TC_STORE_RECOVERY_H
#define TC_STORE_RECOVERY_H

#include "collector/commit/thread.h"

struct tc_recovered {
  uint64_t records;    /* replayed into the sealer */
  uint64_t corrupt;    /* damaged places in the log */
  uint64_t torn_bytes; /* of the last group, never acked */
  uint64_t unreadable; /* tries of a block of the log that failed; the first one: */
  uint64_t unreadable_file, unreadable_at;
  bool had_log;
};

TB_MUST tb_rc tc_recover(struct tc_commit *commit, struct tc_sealer *sealer,
                         const struct tc_statedir *dirs, unsigned loops, struct tb_diag *diag,
                         struct tc_recovered *out);

#endif
