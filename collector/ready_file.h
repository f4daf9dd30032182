/* SPDX-License-Identifier: Apache-2.0 */
/* --ready-file: the daemon's real addresses as key=value lines, for the program that started it and waits.
 *
 * The file exists exactly while a daemon listens: it is renamed into place once all is open and removed when draining
 * begins. A file left by a killed daemon is removed before anything is opened.
 */
#ifndef TC_READY_FILE_H
#define TC_READY_FILE_H

#include "base/result.h"
#include "collector/pipeline.h"

/* Removes the file of a daemon that no longer runs. */
void tc_ready_file_drop_stale(const char *path);
TB_MUST tb_rc tc_ready_file_publish(const char *path, const struct tc_addresses *addresses,
                                    struct tb_diag *diag);

#endif
