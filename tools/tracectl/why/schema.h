/* SPDX-License-Identifier: Apache-2.0 */
/* What `tracectl report why --json` prints, described as reports describe themselves. */
#ifndef TK_WHY_SCHEMA_H
#define TK_WHY_SCHEMA_H

#include "analysis/report.h"

#define TK_WHY_ABOUT "Why one task, region or wait took so long."
extern const struct to_schema tk_why_schema;

#endif
