/* SPDX-License-Identifier: Apache-2.0 */
/* The agents of a simulation and the store they write to, driven by one thread.
 *
 * They are what outlives a power cut: who was acked what, and how far each had got. What the store says that cannot be
 * is a violation, which ends the program. */
#ifndef SIM_AGENTS_H
#define SIM_AGENTS_H

#include "collector/ingest/quota.h"
#include "collector/store/store.h"
#include "sim/script.h"

enum { SIM_STREAMS = 4, SIM_UNACKED_MAX = 24, SIM_STORED_MAX = 512 };

struct sim_agents {
  const struct sim_script *scripts; /* SIM_STREAMS */
  const struct tc_config *config;
  struct sim_chance chance;
  struct tc_store *store; /* NULL: down */
  bool dead;              /* what it says now nobody hears: its power was cut */
  bool failed;            /* it takes nothing more until its next start */
  bool impatient;         /* it may give up what lies open, and tell that it is lost */
  uint64_t keep_ns;       /* so much before and after a start is kept; 0: nothing is */
  bool wired; /* agents talk to it over connections (sim/wire.h); else records are handed to it */
  struct sim_wire *wires;
  struct tc_quota quotas[SIM_STREAMS]; /* what is charged to each agent */
  uint64_t last_conn, barrier;
  struct sim_agent {
    uint64_t conn; /* 0: none */
    uint32_t ref;  /* 0: not attached yet */
    uint64_t acked, next;
    uint64_t sent;   /* the highest number that was ever submitted */
    uint64_t end_at; /* CLOSE comes behind this record; 0: it is not known yet */
  } agents[SIM_STREAMS];
  struct sim_stored {
    uint32_t ref;
    uint64_t gen;
  } stored[SIM_STORED_MAX]; /* to be understood */
  size_t nstored;
};

/* The configuration of a store on the world's disk, with little files. */
void sim_config(struct tc_config *config, unsigned generations_max);

/* Opens the store, attaches whoever has said anything yet. False: it does not open, diag says why. */
bool sim_agents_start(struct sim_agents *agents, struct tb_diag *diag);
/* Ends the store as a daemon does. */
void sim_agents_stop(struct sim_agents *agents);

/* Each whom it is not known of ends its stream at the end of what it has begun, so that soon all is told. False: the store
 * has failed. */
bool sim_agents_end_soon(struct sim_agents *agents);
/* Submits a record of a stream, if it has one to send and the window allows it. */
bool sim_agents_send(struct sim_agents *agents, unsigned stream);
/* The agent is gone, and will come again. */
void sim_agents_leave(struct sim_agents *agents, unsigned stream);
/* Stalls the stream's connection for `ns`, or for ever, without either side noticing. */
void sim_agents_stall(struct sim_agents *agents, unsigned stream, uint64_t ns);
void sim_agents_lose_touch(struct sim_agents *agents, unsigned stream);
/* Something of what is on its way arrives. */
void sim_agents_step(struct sim_agents *agents);
/* The understand branch says what it thinks of a generation that is stored. */
bool sim_agents_understand(struct sim_agents *agents);
bool sim_agents_are_done(const struct sim_agents *agents); /* all is acked */
/* Until all is acked, and archived. False: the store has failed. */
bool sim_agents_finish(struct sim_agents *agents, bool understand);

/* Fills in who asks to write this stream. */
void sim_attach_fill(struct tc_attach *attach, unsigned stream,
                     const unsigned char id[TC_STREAM_BYTES]);

/* Reports a broken promise with its place, and ends the program. */
_Noreturn void sim_violation(const char *fmt, ...) TB_PRINTF(1, 2);
/* Said of each violation: the run's name, and what to begin it with again. */
void sim_violation_context(void (*say)(void *self), void *self);

#endif
