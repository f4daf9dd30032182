/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of a hash table. Keys come from peers: one that knew where they fall could make every look-up a
 * walk. An address is no secret: without address space randomization it is the same in every run. */
#ifndef TB_SEED_H
#define TB_SEED_H

#include <stdint.h>

/* From the kernel, another one each time. Cannot fail: where a sandbox refuses getrandom(2), it comes from the
 * random bytes that the kernel gave the process when it began. A system call: one for all tables of an object. */
uint64_t tb_seed(void);

#endif
