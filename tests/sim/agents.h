/* SPDX-License-Identifier: Apache-2.0 */
/* The agents of a simulation and the store they write to, driven by one thread.
 *
 * The agents survive a power cut: what each was acked, and how far each had got. A reply of the store that cannot be
 * right is a violation, which ends the program. */
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
  bool dead;              /* its power was cut: replies from now on are ignored */
  bool failed;            /* accepts nothing more until its next start */
  bool impatient;         /* may give up open generations, and report them as lost */
  uint64_t keep_ns;       /* kept before and after each start; 0: nothing */
  bool wired; /* agents talk to it over connections (sim/wire.h); else records are handed to it */
  struct sim_wire *wires;
  struct tc_quota quotas[SIM_STREAMS]; /* what is charged to each agent */
  uint64_t last_conn, barrier;
  struct sim_agent {
    uint64_t conn; /* 0: none */
    uint32_t ref;  /* 0: not attached yet */
    uint64_t acked, next;
    uint64_t sent;   /* the highest number that was ever submitted */
    uint64_t end_at; /* CLOSE follows this record; 0: not known yet */
  } agents[SIM_STREAMS];
  struct sim_stored {
    uint32_t ref;
    uint64_t gen;
  } stored[SIM_STORED_MAX]; /* waiting for their verdicts */
  size_t nstored;
};

/* Configures a store on the world's disk, with small files. */
void sim_config(struct tc_config *config, unsigned generations_max);

/* Opens the store and attaches each agent that has sent anything. Returns false with diag set if the store does not
 * open. */
bool sim_agents_start(struct sim_agents *agents, struct tb_diag *diag);
/* Ends the store as a daemon does. */
void sim_agents_stop(struct sim_agents *agents);

/* Lets each stream without an end yet close at the end of its current unit, so that soon everything is reported.
 * Returns false if the store has failed. */
bool sim_agents_end_soon(struct sim_agents *agents);
/* Submits the stream's next record, if there is one and the window allows it. */
bool sim_agents_send(struct sim_agents *agents, unsigned stream);
/* The agent disconnects, and will reconnect. */
void sim_agents_leave(struct sim_agents *agents, unsigned stream);
/* Stalls the stream's connection for `ns`, or for ever, without either side noticing. */
void sim_agents_stall(struct sim_agents *agents, unsigned stream, uint64_t ns);
void sim_agents_lose_touch(struct sim_agents *agents, unsigned stream);
/* Delivers some of the data on its way. */
void sim_agents_step(struct sim_agents *agents);
/* Sends the analysis' verdict on a stored generation. */
bool sim_agents_understand(struct sim_agents *agents);
bool sim_agents_are_done(const struct sim_agents *agents); /* all is acked */
/* Steps until all is acked and archived. Returns false if the store has failed. */
bool sim_agents_finish(struct sim_agents *agents, bool understand);

/* Fills in who asks to write this stream. */
void sim_attach_fill(struct tc_attach *attach, unsigned stream,
                     const unsigned char id[TC_STREAM_BYTES]);

/* Reports a broken promise with its place, and ends the program. */
_Noreturn void sim_violation(const char *fmt, ...) TB_PRINTF(1, 2);
/* Sets a function that prints the run's name and how to repeat it, for each violation. */
void sim_violation_context(void (*say)(void *self), void *self);

#endif
