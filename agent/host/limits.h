/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits at which the agent stays away: it would take what the program needs, and the program would fail where it
 * does not without us.
 *
 * Each limit is for the process or its user as a whole, and what of it is used already cannot be had cheaply. So the agent
 * asks for much more than it takes itself: 64 descriptors and threads, of which it takes up to ten and three, and of
 * memory four times the spool.
 */
#ifndef TA_HOST_LIMITS_H
#define TA_HOST_LIMITS_H

#include <stdint.h>

#include "base/result.h"

TB_MUST tb_rc ta_limits_check(uint64_t spool_bytes,
                              struct tb_diag *diag); /* TB_BUDGET: diag says which */

#endif
