/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of an emitting session. */
#ifndef TA_EMIT_GENERATION_SETTINGS_H
#define TA_EMIT_GENERATION_SETTINGS_H

#include "traceagent.h"

/* The program's struct may be of an earlier version, and shorter; NULL: all defaults. */
struct ta_emit_config ta_emit_config_of(const struct ta_emit_config *config);
/* TA_E_CONFIG: the thread's last error says why. */
int ta_emit_config_check(const struct ta_emit_config *config);

#endif
