/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's SNAPs and their answers; and those that the program itself asks for. Shared inside agent/.
 *
 * Threads   the sender's, but for what client.h offers.
 */
#ifndef TA_NET_SNAPS_H
#define TA_NET_SNAPS_H

#include "agent/net/client.h"

void ta__snaps_begin(struct ta_client *c, uint64_t id, uint64_t last_ns);
TB_MUST tb_rc ta__snaps_answer(struct ta_client *c); /* those that are done, or cannot be */

#endif
