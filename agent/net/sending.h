/* SPDX-License-Identifier: Apache-2.0 */
/* Sends control frames to the collector, and records as far as credit, rate and socket allow. Private to agent/net; called on
 * the sender's thread. */
#ifndef TA_NET_SENDING_H
#define TA_NET_SENDING_H

#include <protobuf-c/protobuf-c.h>

#include "agent/net/client.h"

/* Sends a control frame; call it only between records. */
TB_MUST tb_rc ta__client_say(struct ta_client *c, enum tp_kind kind,
                             const ProtobufCMessage *message);
/* Writes OpenSSL's pending bytes to the socket, as many as fit. */
void ta__client_flush(struct ta_client *c);
TB_MUST tb_rc ta__client_send_records(struct ta_client *c);

#endif
