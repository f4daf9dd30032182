/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's messages: WELCOME, ACK, GOAWAY, REFUSE, heartbeats; kept to docs/PROTOCOL.md.
 *
 * Part of agent/net/client.h, for its thread alone: reads frames off the connection and does to the client
 * and its spool what they say.
 *
 * Errors    TB_PROTOCOL: the collector broke the protocol. TB_REFUSED, TB_END, TB_IO: it wants the connection
 *           ended, for good or not. The words are in the client's diag.
 */
#ifndef TA_NET_ANSWERS_H
#define TA_NET_ANSWERS_H

#include "agent/net/client.h"

enum { TA_HEARTBEAT_MS = 5000 /* where the collector names none */ };

/* Everything that TLS has, until it wants more from the socket or the client has ended. */
TB_MUST tb_rc ta__answers_read(struct ta_client *c);

/* client.c's: an input to the table of its life. */
void ta__client_input(struct ta_client *c, enum ta_client_input in);
void ta__client_warn(struct ta_client *c,
                     const char *text); /* last_error, and a line of the log if it is news */
/* Acks come again: last_error is empty if it was this text. */
void ta__client_forgive(struct ta_client *c, const char *text);

#endif
