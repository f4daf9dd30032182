/* SPDX-License-Identifier: Apache-2.0 */
/* The commit thread: takes what the loops submit, makes records durable group by group, acks them, and
 * hands them on to the sealer. It owns the stream table and the log.
 *
 * Threads   submit: one calling thread per sender. Before start and after stop: the starting thread.
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
/* Recovery fills it in before start. */
struct tc_streams *tc_commit_streams(struct tc_commit *commit);
TB_MUST tb_rc tc_commit_open_log(struct tc_commit *commit, uint64_t next_lsn, uint64_t previous_end,
                                 struct tb_diag *diag);
struct tc_log *tc_commit_log(struct tc_commit *commit);
void tc_commit_wake(void *commit); /* struct tc_commit; the sealer has settled reports */

TB_MUST tb_rc tc_commit_start(struct tc_commit *commit, struct tc_sealer *sealer,
                              struct tb_diag *diag);
/* Commits what was submitted, hands it on, ends the thread; at the deadline it ends with what is done, 0: there is
 * none. Acked records are in the log by then. */
void tc_commit_stop(struct tc_commit *commit, uint64_t deadline_mono_ns);
/* After the sealer stopped too: its last reports go to the log. */
void tc_commit_finish(struct tc_commit *commit);
void tc_commit_free(struct tc_commit *commit);

bool tc_commit_submit(struct tc_commit *commit, unsigned sender, struct tc_submit *msg);

#endif
