/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's SNAPs and their answers, and the program's own snaps. Shared inside agent/.
 *
 * Threads   the sender's, except for the calls in client.h.
 */
#ifndef TA_NET_SNAPS_H
#define TA_NET_SNAPS_H

#include "agent/net/client.h"

void ta__snaps_begin(struct ta_client *c, uint64_t id, uint64_t last_ns);
TB_MUST tb_rc ta__snaps_answer(struct ta_client *c); /* answers finished and refused snaps */

#endif
