/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/args/idle.h"

#include "online/spans/stacks/idle.h"
#include "tools/tracectl/term/tracectl.h"

tb_rc tk_read_idle(const struct tk_option *option, const char *value, void *field,
                   struct tb_diag *diag) {
  struct tb_diag unknown;

  tb_diag_clear(&unknown);
  *(const char **)field = value;
  if (to_idle_check(value, diag) != TB_OK) return tk_option_fails(option, diag);
  if (to_idle_unknown(value, &unknown)) tk_note("--idle", "%s", unknown.text);
  return TB_OK;
}
