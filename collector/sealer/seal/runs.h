/* SPDX-License-Identifier: Apache-2.0 */
/* Opens runs with their first batch, closes them at a border between two generations, and gives up open generations that
 * cannot become whole.
 *
 * A full disk may stop any of these functions, which is then called again. So each does what can fail before it changes
 * state. */
#ifndef TC_SEALER_SEAL_RUNS_H
#define TC_SEALER_SEAL_RUNS_H

#include "collector/sealer/seal/seal.h"

TB_MUST tb_rc tc__flush_dirty(struct tc__seal *seal, bool to_disk, struct tb_diag *diag);
/* Sets stream->open to a new file without a generation. */
TB_MUST tb_rc tc__open_run(struct tc__seal *seal, struct tc__stream *stream, uint64_t gen,
                           uint64_t wall_ns, struct tb_diag *diag);
/* Closes the open run, which is at a border, and queues it. */
void tc__seal_open(struct tc__seal *seal, struct tc__stream *stream);
void tc__enqueue(struct tc__seal *seal, struct tc__file *file);
/* Publishing the file will settle all records up to seq. */
void tc__settles(struct tc__file *file, uint64_t seq);
/* Gives up the open generation and moves its bytes to quarantine/. note_loss: also reports the loss, and counts further batches
 * as lost; false if a LOSS record reports it. */
TB_MUST tb_rc tc__quarantine_open(struct tc__seal *seal, struct tc__stream *stream, const char *why,
                                  bool note_loss, uint64_t seq, struct tb_diag *diag);
/* Closes and queues the whole generations of the open file; an open one moves to a file of its own. */
TB_MUST tb_rc tc__seal_border(struct tc__seal *seal, struct tc__stream *stream,
                              struct tb_diag *diag);
TB_MUST tb_rc tc__seal_borders(struct tc__seal *seal,
                               struct tb_diag *diag); /* does so for all streams */
/* Returns a run's maximum age: segment.seconds_max or up to a quarter less, so that runs that began together do not end
 * together. */
uint64_t tc__run_age_max(const struct tc__env *env, const struct tc__stream *stream);
/* Closes runs that are too old at their last border, even if no further records arrive. */
TB_MUST tb_rc tc__seal_old_runs(struct tc__seal *seal, struct tb_diag *diag);

#endif
