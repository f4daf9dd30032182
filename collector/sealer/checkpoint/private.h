/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_SEALER_CHECKPOINT_PRIVATE_H
#define TC_SEALER_CHECKPOINT_PRIVATE_H

#include "collector/sealer/checkpoint/published.h"
#include "proto/log.pb-c.h"

/* checkpoint.c */
/* All of an open file is on the disk, its name, too. */
tb_rc tc__sync_part(const struct tc__env *env, const struct tc__file *file, struct tb_diag *diag);
/* Adds the losses that no meta has yet. */
tb_rc tc__report_checkpoint(struct tc__outbox *outbox, struct tc__stream *stream,
                            Tracecollect__V1__LogCheckpoint *m, struct tb_diag *diag);
void tc__put_part_aside(struct tc__seal *seal, struct tc__stream *stream, uint64_t gen);
/* *out_was_aside: it lay in quarantine. */
tb_rc tc__fetch_part_back(struct tc__seal *seal, const struct tc__stream *stream, uint64_t gen,
                          struct tb_diag *diag, bool *out_was_aside);

/* run_checkpoint.c */
/* A checkpoint of the stream's run lets the log go; else the run has to be sealed for it. */
bool tc__run_takes_checkpoint(const struct tc__stream *stream);
tb_rc tc__checkpoint_run(struct tc__seal *seal, struct tc__stream *stream, struct tb_diag *diag);
tb_rc tc__resume_run(struct tc__recovery *recovery, struct tc__stream *stream,
                     const Tracecollect__V1__LogCheckpoint *m, struct tb_diag *diag,
                     uint64_t *out_skip_to);

#endif
