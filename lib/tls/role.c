/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/role.h"

#define R(role)                        (1u << TC_ROLE_##role)
#define TC_ACT(ID, NAME, ROLES, ABOUT) [TC_ACT_##ID] = { NAME, ROLES },
static const struct {
  const char *name;
  unsigned roles;
} acts[TC_ACTS] = {
#include "tls/role.def"
};
#undef TC_ACT
#undef R

const char *tc_role_name(enum tc_role role) {
  static const char *const names[TC_ROLES_ALL] = {
    [TC_ROLE_SERVER] = "server",   [TC_ROLE_AGENT] = "agent",       [TC_ROLE_READER] = "reader",
    [TC_ROLE_NOBODY] = "nobody",   [TC_ROLE_LOOPBACK] = "loopback", [TC_ROLE_SOCKET] = "socket",
    [TC_ROLE_METRICS] = "metrics",
  };

  return names[role];
}

const char *tc_act_name(enum tc_act act) {
  return acts[act].name;
}

bool tc_role_may(enum tc_role role, enum tc_act act) {
  return (acts[act].roles >> role & 1) != 0;
}

tb_rc tc_role_check(enum tc_role role, enum tc_act act, const char *identity,
                    struct tb_diag *diag) {
  enum tc_role needed = TC_ROLE_SERVER;

  if (tc_role_may(role, act)) return TB_OK;
  while (needed < TC_ROLES && !tc_role_may(needed, act)) needed++;
  if (needed == TC_ROLES)
    return tb_fail(diag, TB_REFUSED, "certificate is for %.127s; no certificate is enough here",
                   identity);
  return tb_fail(diag, TB_REFUSED, "certificate is for %.127s, here tracecollect:%s/NAME is needed",
                 identity, tc_role_name(needed));
}
