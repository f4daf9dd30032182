/* SPDX-License-Identifier: Apache-2.0 */
/* Can a collector be reached at all? nng only says that a dial did not work; the operating system says
 * why: no such name, connection refused, no permission.
 *
 * Time      waits at most ms for each address.
 * Errors    TB_IO with the reason in diag.
 */
#ifndef TK_REMOTE_PROBE_H
#define TK_REMOTE_PROBE_H

#include "tools/tracectl/remote/endpoint.h"

TB_MUST tb_rc tk_probe(const struct tk_endpoint *where, int ms, struct tb_diag *diag);

#endif
