/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits below which the agent does not start, because it could use up what the program itself needs.
 *
 * Each limit is for the process or its user as a whole, and finding out how much is used already is expensive. So the
 * agent requires much more than it takes: 64 descriptors and threads, of which it takes up to ten and three, and four
 * times the spool's memory.
 */
#ifndef TA_HOST_LIMITS_H
#define TA_HOST_LIMITS_H

#include <stdint.h>

#include "base/result.h"

TB_MUST tb_rc ta_limits_check(uint64_t spool_bytes,
                              struct tb_diag *diag); /* TB_BUDGET: diag says which */

#endif
