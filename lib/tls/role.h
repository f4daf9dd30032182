/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of peers and their permissions: one table (role.def) for HTTP, the feed and the agents' port. A role depends on the
 * certificate and on the listener; never on data that the peer sends. */
#ifndef TC_TLS_ROLE_H
#define TC_TLS_ROLE_H

#include "base/result.h"

enum tc_role {
  TC_ROLE_SERVER,
  TC_ROLE_AGENT,
  TC_ROLE_READER,
  TC_ROLES,                  /* number of roles in certificates */
  TC_ROLE_NOBODY = TC_ROLES, /* TLS peer without a usable certificate */
  TC_ROLE_LOOPBACK,          /* a user of this host, over plain TCP */
  TC_ROLE_SOCKET,            /* a peer on the unix socket */
  TC_ROLE_METRICS,           /* a peer on the metrics port */
  TC_ROLES_ALL
};

enum tc_act {
#define TC_ACT(ID, ...) TC_ACT_##ID,
#include "tls/role.def"
#undef TC_ACT
  TC_ACTS
};

const char *tc_role_name(enum tc_role role); /* "server"; also the default name of its file */
const char *tc_act_name(enum tc_act act);

bool tc_role_may(enum tc_role role, enum tc_act act);
/* Checks a certificate's role; TB_REFUSED with the needed role in diag. identity: for the message. */
TB_MUST tb_rc tc_role_check(enum tc_role role, enum tc_act act, const char *identity,
                            struct tb_diag *diag);

#endif
