/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tls/role.h"

/* The table as in the reference, written out again. */
Test(role, each_may_do_this_and_nothing_else) {
  static const char *const may[TC_ROLES_ALL] = {
    [TC_ROLE_SERVER] = "state serve ",
    [TC_ROLE_AGENT] = "state put-trace send ",
    [TC_ROLE_READER] = "state reasons metrics read lease snap verify feed ",
    [TC_ROLE_NOBODY] = "state ",
    [TC_ROLE_LOOPBACK] = "state reasons metrics read ",
    [TC_ROLE_SOCKET] = "state reasons metrics read lease snap verify rules put-trace feed ",
    [TC_ROLE_METRICS] = "state metrics ",
  };

  for (enum tc_role role = 0; role < TC_ROLES_ALL; role++) {
    char text[200] = "";

    for (enum tc_act act = 0; act < TC_ACTS; act++)
      if (tc_role_may(role, act)) strcat(strcat(text, tc_act_name(act)), " ");
    cr_expect_str_eq(text, may[role], "%s: %s", tc_role_name(role), text);
  }
}

Test(role, a_refusal_says_what_is_needed) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_expect_eq(tc_role_check(TC_ROLE_READER, TC_ACT_READ, "x", &diag), TB_OK);
  cr_expect_eq(tc_role_check(TC_ROLE_READER, TC_ACT_SEND, "tracecollect:reader/a", &diag),
               TB_REFUSED);
  cr_expect_str_eq(
      diag.text,
      "certificate is for tracecollect:reader/a, here tracecollect:agent/NAME is needed");
  tb_diag_clear(&diag);
  cr_expect_eq(tc_role_check(TC_ROLE_AGENT, TC_ACT_RULES, "tracecollect:agent/a", &diag),
               TB_REFUSED);
  cr_expect_str_eq(diag.text,
                   "certificate is for tracecollect:agent/a; no certificate is enough here");
}
