/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of an emitting session. */
#ifndef TA_EMIT_GENERATION_SETTINGS_H
#define TA_EMIT_GENERATION_SETTINGS_H

#include "traceagent.h"

/* Copies the program's struct, which may be shorter if it was compiled with an earlier version. NULL: all defaults. */
struct ta_emit_config ta_emit_config_of(const struct ta_emit_config *config);
/* Returns TA_E_CONFIG if a setting is invalid; the thread's last error is the reason. */
int ta_emit_config_check(const struct ta_emit_config *config);

#endif
