/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on the collector's messages: changes the client and its spool as docs/PROTOCOL.md asks. Private to agent/net.
 *
 * Threads   the sender's.
 * Errors    TB_PROTOCOL: the collector broke the protocol. TB_REFUSED, TB_END, TB_IO: it ends the connection,
 *           for good or not. The text is in the client's diag.
 */
#ifndef TA_NET_ANSWERS_H
#define TA_NET_ANSWERS_H

#include "agent/net/client.h"

enum { TA_HEARTBEAT_MS = 5000 /* where the collector names none */ };

/* out: the input to the table of the client's life, TA_CLIENT_INPUT_COUNT: none. The next message may be read only after
 * that input was acted on. */
TB_MUST tb_rc ta__client_act_on(struct ta_client *c, const struct ta_message *message,
                                enum ta_client_input *out);

#endif
