/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's configuration: collector/config.def as a struct, filled from YAML and --set.
 *
 * Memory    strings belong to the struct; tc_config_fini() frees them.
 * Errors    TB_BROKEN with "FILE:LINE: key: reason" in diag: unknown key, wrong type, out of bounds.
 */
#ifndef TC_CONFIG_H
#define TC_CONFIG_H

#include "base/result.h"

#define TC_FIELD_STRING char *
#define TC_FIELD_COUNT uint64_t
#define TC_FIELD_BYTES uint64_t
#define TC_FIELD_TIME uint64_t /* ns */
#define TC_FIELD_BOOL bool

/* Field names join section and key: listen_agents, retention_age, top_state. */
#define TC_JOIN_(a, b) a##_##b
#define TC_KEY(section, key, type, def, min, max, text) TC_FIELD_##type TC_JOIN_(section, key);
struct tc_config {
#include "collector/config.def"
};
#undef TC_KEY

void tc_config_init(struct tc_config *config); /* all defaults */
void tc_config_fini(struct tc_config *config);
TB_MUST tb_rc tc_config_load(struct tc_config *config, const char *path, struct tb_diag *diag);
TB_MUST tb_rc tc_config_set(struct tc_config *config, const char *assignment, struct tb_diag *diag); /* KEY=VALUE */
/* Checks keys against each other and fills the defaults that depend on others (state, certs, URLs). */
TB_MUST tb_rc tc_config_finish(struct tc_config *config, struct tb_diag *diag);
TB_MUST tb_rc tc_config_print_default(int fd); /* commented YAML that loads back to the defaults */

#endif
