/* SPDX-License-Identifier: Apache-2.0 */
/* Names of tasks and open regions, which outlive their generation. Each text is stored once, because many
 * regions can share it (a region is five bytes on the wire, its name up to 1,024).
 *
 * Memory    names from mem, counted by holders. At most TO_NAMES_UNHELD names without a holder are kept: the next task often
 *           has the name of one that has ended.
 * Errors    TB_BUDGET, TB_NOMEM from mem.
 */
#ifndef TO_EVENT_NAMES_H
#define TO_EVENT_NAMES_H

#include "base/map.h"
#include "online/event/generation.h"

struct to_name {
  uint64_t hash;
  uint32_t holders, len;
  bool listed;   /* in by_hash, which has only one text for each hash */
  uint8_t place; /* in unheld */
  char text[];
};

enum { TO_NAMES_UNHELD = 32 };

struct to_names {
  struct tb_mem *mem;
  struct tb_map by_hash;
  struct to_name *unheld[TO_NAMES_UNHELD]; /* in by_hash, without a holder */
  unsigned n_unheld, oldest;               /* oldest: the one that makes room */
};

void to__names_init(struct to_names *names, struct tb_mem *mem);
void to__names_fini(struct to_names *names); /* every name must be released before */

TB_MUST tb_rc to__name_hold(struct to_names *names, struct to_string text, struct to_name **out);
void to__name_release(struct to_names *names, struct to_name *name);
bool to__name_is(const struct to_name *name, struct to_string text);

#endif
