/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the configuration. */
#ifndef TC_CONFIG_INTERNAL_H
#define TC_CONFIG_INTERNAL_H

#include "config/table.h"

/* Source of a value: a file and line; "--set" or a variable, and 0. */
struct tc__origin {
  const char *file;
  size_t line;
};

const struct tc_config_key *tc__config_find(const char *name); /* dotted; NULL: unknown */
bool tc__config_is_section(const char *name);

TB_MUST tb_rc tc__config_assign(struct tc_config *config, const struct tc_config_key *key,
                                const char *value, struct tc__origin at, struct tb_diag *diag);
tb_rc tc__config_unknown(struct tb_diag *diag, struct tc__origin at, const char *name);
tb_rc tc__config_fail(struct tb_diag *diag, struct tc__origin at, const char *key, const char *fmt,
                      ...) TB_PRINTF(4, 5);

#endif
