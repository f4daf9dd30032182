/* SPDX-License-Identifier: Apache-2.0 */
/* The secret seed of a hash table. Peers choose keys: a peer that could predict their slots could make every look-up
 * linear. An address is not a secret: without address space randomization it never changes. */
#ifndef TB_SEED_H
#define TB_SEED_H

#include <stdint.h>

/* Returns a new seed from the kernel. Cannot fail: if a sandbox refuses getrandom(2), the seed is derived from the
 * random bytes of AT_RANDOM. Costs a system call, so all tables of an object share one seed. */
uint64_t tb_seed(void);

#endif
