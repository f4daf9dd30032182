/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a stream and a day in the archive. */
#ifndef TC_SEALER_SEAL_FOLDER_H
#define TC_SEALER_SEAL_FOLDER_H

#include "collector/sealer/seal/aside.h"

/* Syncs a stream's folder, and the folders of its day and the archive. Returns false with errno set. */
bool tc__sync_names(int dir_fd);
/* Removes a segment that was published before a crash, begins with this record and cannot be adopted: the names of an earlier
 * segment did not reach the disk. The segment was never acked, and the log still has its records: it is rebuilt. */
TB_MUST tb_rc tc__take_back(struct tc__aside *aside, const struct tc__stream *stream,
                            const char *day, uint64_t gen, uint64_t first_seq,
                            struct tb_diag *diag);

#endif
