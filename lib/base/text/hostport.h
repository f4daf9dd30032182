/* SPDX-License-Identifier: Apache-2.0 */
/* HOST:PORT as people write it: name:7070, 127.0.0.1:7070, [::1]:7070. No name is looked up here.
 */
#ifndef TB_HOSTPORT_H
#define TB_HOSTPORT_H

#include "base/result.h"

enum { TB_HOST_MAX = 253 };

struct tb_hostport {
  char host[TB_HOST_MAX + 1]; /* without brackets */
  uint16_t port;
};

/* Requires a port, which may be 0. Returns TB_BROKEN with the reason in diag if text is not HOST:PORT. */
TB_MUST tb_rc tb_hostport_parse(const char *text, struct tb_diag *diag, struct tb_hostport *out);

/* Parses HOST or HOST:PORT, as in the header Host of HTTP; a missing port becomes 0. */
TB_MUST tb_rc tb_host_parse(const char *text, struct tb_diag *diag, struct tb_hostport *out);

/* Returns true for 127.0.0.0/8, ::1 and "localhost" in any case; no name is looked up. */
bool tb_host_is_loopback(const char *host);

#endif
