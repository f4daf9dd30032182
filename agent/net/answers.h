/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on the collector's messages: changes the client and its spool as docs/PROTOCOL.md requires. Private to agent/net.
 *
 * Threads   the sender's.
 * Errors    TB_PROTOCOL: the collector broke the protocol. TB_REFUSED, TB_END, TB_IO: the collector ended the connection, for
 *           good or not. The reason is in the client's diag.
 */
#ifndef TA_NET_ANSWERS_H
#define TA_NET_ANSWERS_H

#include "agent/net/client.h"

enum { TA_HEARTBEAT_MS = 5000 /* if the collector names none */ };

/* *out: the input for the table of states in client.c; TA_CLIENT_INPUT_COUNT: none. The caller must handle this input before it
 * reads the next message. */
TB_MUST tb_rc ta__client_act_on(struct ta_client *c, const struct ta_message *message,
                                enum ta_client_input *out);

#endif
