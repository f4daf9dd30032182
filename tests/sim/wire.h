/* SPDX-License-Identifier: Apache-2.0 */
/* A connection between an agent and the store, as bytes.
 *
 *     agent ──frames──> on their way ──pieces──> the collector's own ingest ──> store
 *     agent <── late: welcome, ack, refusal ──────────────────────────────────── store
 *
 * What is said arrives in pieces that chance cuts, one byte or many, and late, and so do answers. Who leaves is not
 * missed at once: the bytes of a connection whose agent is gone go on to arrive, beside those of the one that it comes
 * back with, until they are cut off in the middle of a frame. A connection may stall, and it may be half open: what is
 * said on it is swallowed, both ways, until both ends give it up for silence.
 *
 * Memory    a connection's records are charged to its agent (I9: nothing is left when the store has ended).
 * Threads   one.
 */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "sim/agents.h"

struct sim_wire;

/* The agent says hello. */
void sim_wire_open(struct sim_agents *agents, unsigned stream, uint64_t conn,
                   const unsigned char id[TC_STREAM_BYTES]);
void sim_wire_say(struct sim_agents *agents, uint64_t conn, const struct tc_record *record);
/* Ends a connection whose agent has left. */
void sim_wire_leave(struct sim_agents *agents, uint64_t conn);
void sim_wire_stall(struct sim_agents *agents, uint64_t conn, uint64_t ns);
void sim_wire_swallow(struct sim_agents *agents, uint64_t conn);

/* Something of what is on its way arrives. False: nothing is. */
bool sim_wires_step(struct sim_agents *agents);
/* An answer of the store to a connection sets out. To whose agent; SIM_STREAMS: nobody's any more. */
unsigned sim_wires_answer(struct sim_agents *agents, const struct tc_reply *reply);
/* All connections are lost. */
void sim_wires_end(struct sim_agents *agents);

#endif
