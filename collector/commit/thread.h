/* SPDX-License-Identifier: Apache-2.0 */
/* The commit thread: takes what the loops submit, makes records durable group by group, acks them, and passes them on to
 * the sealer. It owns the stream table and the log.
 *
 * Threads   submit: one calling thread per sender. Others: the starting thread, before start and after stop.
 */
#ifndef TC_COMMIT_THREAD_H
#define TC_COMMIT_THREAD_H

#include "collector/commit/stream_table.h"
#include "collector/sealer/sealer.h"
#include "collector/wal/writer.h"

struct tc_commit;

struct tc_commit_options {
  const struct tc_config *config;
  const struct tc_statedir *dirs;
  unsigned loops;
  bool durable;
  struct tc_store_sink sink;
  struct tc_stats *stats;
  int (*sync)(int fd); /* for tests; NULL: fdatasync */
};

TB_MUST tb_rc tc_commit_new(const struct tc_commit_options *options, struct tb_diag *diag,
                            struct tc_commit **out);
/* Returns the stream table, for recovery to fill it before start. */
struct tc_streams *tc_commit_streams(struct tc_commit *commit);
TB_MUST tb_rc tc_commit_open_log(struct tc_commit *commit, uint64_t next_lsn, uint64_t previous_end,
                                 struct tb_diag *diag);
struct tc_wal *tc_commit_wal(struct tc_commit *commit);
void tc_commit_wake(void *commit); /* commit: a struct tc_commit; called by the sealer */

TB_MUST tb_rc tc_commit_start(struct tc_commit *commit, struct tc_sealer *sealer,
                              struct tb_diag *diag);
/* Commits what was submitted, passes it on and ends the thread, at the deadline in any case; 0: no deadline. Acked records
 * are in the log. */
void tc_commit_stop(struct tc_commit *commit, uint64_t deadline_mono_ns);
/* Writes the sealer's last reports to the log, after the sealer has stopped, too. */
void tc_commit_finish(struct tc_commit *commit);
void tc_commit_free(struct tc_commit *commit);

bool tc_commit_submit(struct tc_commit *commit, unsigned sender, struct tc_submit *msg);

#endif
