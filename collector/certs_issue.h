/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one key and one certificate; shared by certs.c only. dir is for messages; dialled: a server's
 * name is a host's, too. */
#ifndef TC_CERTS_ISSUE_H
#define TC_CERTS_ISSUE_H

#include "collector/certs.h"

TB_MUST tb_rc tc__certs_authority(int dir_fd, const char *dir, struct tb_diag *diag);
TB_MUST tb_rc tc__certs_issue(int dir_fd, const char *dir, enum tc_role role, const char *name,
                              bool dialled, struct tb_diag *diag);

#endif
