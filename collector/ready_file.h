/* SPDX-License-Identifier: Apache-2.0 */
/* --ready-file: the daemon's real addresses as key=value lines, for the program that started it and waits.
 *
 * The file is there exactly while a daemon listens: it comes by rename once all is open, goes when draining
 * begins, and what a killed run left is removed before the next one opens anything.
 */
#ifndef TC_READY_FILE_H
#define TC_READY_FILE_H

#include "base/result.h"
#include "collector/pipeline.h"

/* Removes the file of a run that is no more; one whose process lives stays. */
void tc_ready_file_drop_stale(const char *path);
TB_MUST tb_rc tc_ready_file_publish(const char *path, const struct tc_addresses *addresses,
                                    struct tb_diag *diag);

#endif
