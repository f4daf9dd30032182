/* SPDX-License-Identifier: Apache-2.0 */
/* Describes an explanation's JSON (why.h), in the form of a report's schema. */
#ifndef TO_WHY_SCHEMA_H
#define TO_WHY_SCHEMA_H

#include "online/analysis/report.h"

#define TO_WHY_ABOUT "Why one task, region or wait took so long."
extern const struct to_schema to_why_schema;

#endif
