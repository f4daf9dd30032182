/* SPDX-License-Identifier: Apache-2.0 */
/* Records to the collector, as credit, rate and socket allow. Private to agent/net; called on the sender's thread. */
#ifndef TA_NET_SENDING_H
#define TA_NET_SENDING_H

#include "agent/net/client.h"

/* From OpenSSL to the socket, as far as it takes them. */
void ta__client_flush(struct ta_client *c);
TB_MUST tb_rc ta__client_send_records(struct ta_client *c);

#endif
