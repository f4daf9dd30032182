/* SPDX-License-Identifier: Apache-2.0 */
/* What the disk must hold once all agents have closed their streams, all of it was acked, and the store was ended:
 * each whole generation once, its bytes the script's or, where retention took it, gone, each loss once, no other file,
 * and nothing for `tracectl verify` to complain of (checksums, chains, the catalog, and the accounting of every stream). */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "sim/agents.h"

struct sim_whole {
  uint64_t expired; /* segments; with verify */
  uint64_t folded;  /* records of ledgers */
};

/* Of sim_world's disk. A violation ends the program. verify: with what `tracectl verify` has to say, which takes as
 * long as all the rest. */
struct sim_whole sim_expect_whole(const struct sim_agents *agents, bool verify);

/* One number for all that stands in archive/: names and bytes. */
uint64_t sim_archive_hash(void);

#endif
