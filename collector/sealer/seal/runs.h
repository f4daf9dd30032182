/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: opened with their first batch, sealed at a border between two generations, and given up where the one that is
 * open will never be whole.
 *
 * A full disk may stop any of these; it is called again. So whatever can fail comes before whatever is remembered. */
#ifndef TC_SEALER_SEAL_RUNS_H
#define TC_SEALER_SEAL_RUNS_H

#include "collector/sealer/seal/seal.h"

TB_MUST tb_rc tc__flush_dirty(struct tc__seal *seal, bool to_disk, struct tb_diag *diag);
/* stream->open is a new file, without a generation yet. */
TB_MUST tb_rc tc__open_run(struct tc__seal *seal, struct tc__stream *stream, uint64_t gen,
                           uint64_t wall_ns, struct tb_diag *diag);
/* The open run, which is at a border, goes to the queue. */
void tc__seal_open(struct tc__seal *seal, struct tc__stream *stream);
void tc__enqueue(struct tc__seal *seal, struct tc__file *file);
/* Once the file is published, all up to this record is settled. */
void tc__settles(struct tc__file *file, uint64_t seq);
/* Gives up the open generation: its bytes go to quarantine/. note_loss: nothing else reported it, and what
 * still comes of it is lost as well. */
TB_MUST tb_rc tc__quarantine_open(struct tc__seal *seal, struct tc__stream *stream, const char *why,
                                  bool note_loss, uint64_t seq, struct tb_diag *diag);
/* The whole generations in the open file are sealed; what is not goes on in a file of its own. */
TB_MUST tb_rc tc__seal_border(struct tc__seal *seal, struct tc__stream *stream,
                              struct tb_diag *diag);
TB_MUST tb_rc tc__seal_borders(struct tc__seal *seal, struct tb_diag *diag); /* of all streams */
/* How old a run gets: segment.seconds_max or up to a quarter less, so that runs that began together do not end
 * together. */
uint64_t tc__run_age_max(const struct tc__env *env, const struct tc__stream *stream);
/* Runs that are old enough are sealed at their last border, also where nothing more comes. */
TB_MUST tb_rc tc__seal_old_runs(struct tc__seal *seal, struct tb_diag *diag);

#endif
