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

/* TB_BROKEN with the reason in diag; a port is required, 0 is one. */
TB_MUST tb_rc tb_hostport_parse(const char *text, struct tb_diag *diag, struct tb_hostport *out);

/* The same where the port may be missing, as in the header Host of HTTP: it is 0 then. */
TB_MUST tb_rc tb_host_parse(const char *text, struct tb_diag *diag, struct tb_hostport *out);

/* 127.0.0.0/8, ::1 or "localhost" by its letters, large or small. */
bool tb_host_is_loopback(const char *host);

#endif
