/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the disk once all agents have closed their streams, everything was acked, and the store has stopped: each
 * whole generation is stored once, with the bytes of the script, or retention has deleted it; each loss is recorded
 * once; there is no other file; and `tracectl verify` finds no fault (checksums, chains, the catalog, and the
 * accounting of every stream). */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "sim/agents.h"

struct sim_whole {
  uint64_t expired; /* segments; set only with verify */
  uint64_t folded;  /* records of ledgers */
};

/* Checks the disk of sim_world. A violation ends the program. verify: run `tracectl verify`, too, which takes as long
 * as all the rest. */
struct sim_whole sim_expect_whole(const struct sim_agents *agents, bool verify);

/* Returns a hash of all names and bytes in archive/. */
uint64_t sim_archive_hash(void);

#endif
