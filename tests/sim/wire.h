/* SPDX-License-Identifier: Apache-2.0 */
/* A connection between an agent and the store, as bytes.
 *
 *     agent ──frames──> on their way ──pieces──> the collector's own ingest ──> store
 *     agent <── late: welcome, ack, refusal ──────────────────────────────────── store
 *
 * Bytes arrive late and in random pieces, of one byte or many; answers arrive late, too. A lost connection is not
 * noticed at once: its remaining bytes go on to arrive, beside those of the agent's next connection, until they are cut
 * off in the middle of a frame. A connection may stall. It may also be half open: bytes are swallowed both ways, until
 * both ends give the connection up for silence.
 *
 * Memory    a connection's records are charged to its agent (I9: nothing is left when the store has ended).
 * Threads   one.
 */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "sim/agents.h"

struct sim_wire;

/* Opens a connection; the agent sends HELLO. */
void sim_wire_open(struct sim_agents *agents, unsigned stream, uint64_t conn,
                   const unsigned char id[TC_STREAM_BYTES]);
void sim_wire_say(struct sim_agents *agents, uint64_t conn, const struct tc_record *record);
/* Ends a connection whose agent has left. */
void sim_wire_leave(struct sim_agents *agents, uint64_t conn);
void sim_wire_stall(struct sim_agents *agents, uint64_t conn, uint64_t ns);
void sim_wire_swallow(struct sim_agents *agents, uint64_t conn);

/* Delivers some of the data on its way. Returns false if there is none. */
bool sim_wires_step(struct sim_agents *agents);
/* Sends an answer of the store over a connection. Returns its agent's stream; SIM_STREAMS if the connection is gone. */
unsigned sim_wires_answer(struct sim_agents *agents, const struct tc_reply *reply);
/* Ends all connections. */
void sim_wires_end(struct sim_agents *agents);

#endif
