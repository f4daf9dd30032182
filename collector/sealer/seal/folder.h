/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a stream and a day in the archive. */
#ifndef TC_SEALER_SEAL_FOLDER_H
#define TC_SEALER_SEAL_FOLDER_H

#include "collector/sealer/seal/aside.h"

/* The names in a stream's folder reach the disk, its own and its day's too. False: errno. */
bool tc__sync_names(int dir_fd);
/* What the last run published of the generations from this record on cannot be taken as it is; its names go, which is on
 * the disk then. */
TB_MUST tb_rc tc__take_back(struct tc__aside *aside, const struct tc__stream *stream,
                            const char *day, uint64_t gen, uint64_t first_seq,
                            struct tb_diag *diag);

#endif
