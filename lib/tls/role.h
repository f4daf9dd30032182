/* SPDX-License-Identifier: Apache-2.0 */
/* Who a peer is, and what it may do: one table (role.def) for HTTP, the feed and the port of the agents.
 *
 * A role comes from a certificate, from the door that the peer came through, or from both; never from what it says. */
#ifndef TC_TLS_ROLE_H
#define TC_TLS_ROLE_H

#include "base/result.h"

enum tc_role {
  TC_ROLE_SERVER,
  TC_ROLE_AGENT,
  TC_ROLE_READER,
  TC_ROLES,                 /* of certificates, so many */
  TC_ROLE_NOBODY = TC_ROLES, /* over TLS, without a certificate or with one of no use there */
  TC_ROLE_LOOPBACK,         /* a user of this host, over plain TCP */
  TC_ROLE_SOCKET,           /* one who may write to the Unix socket */
  TC_ROLE_METRICS,          /* whoever reaches the port for metrics */
  TC_ROLES_ALL
};

enum tc_act {
#define TC_ACT(ID, ...) TC_ACT_##ID,
#include "tls/role.def"
#undef TC_ACT
  TC_ACTS
};

const char *tc_role_name(enum tc_role role); /* "server": of a certificate, also its file's name */
const char *tc_act_name(enum tc_act act);

bool tc_role_may(enum tc_role role, enum tc_act act);
/* The same of a certificate's identity; TB_REFUSED says what was needed. */
TB_MUST tb_rc tc_role_check(enum tc_role role, enum tc_act act, const char *identity,
                            struct tb_diag *diag);

#endif
