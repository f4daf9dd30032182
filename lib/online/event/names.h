/* SPDX-License-Identifier: Apache-2.0 */
/* Names that outlive their generation: of tasks and of open regions. Each text is kept once, however many
 * regions carry it (a region is five bytes on the wire, its name up to 1,024).
 *
 * Memory    a name from mem, while someone holds it.
 * Errors    TB_BUDGET, TB_NOMEM from mem.
 */
#ifndef TO_EVENT_NAMES_H
#define TO_EVENT_NAMES_H

#include "base/map.h"
#include "online/event/generation.h"

struct to_name {
  uint64_t hash;
  uint32_t holders, len;
  bool listed; /* in by_hash; of two texts with one hash only one is */
  char text[];
};

struct to_names {
  struct tb_mem *mem;
  struct tb_map by_hash;
};

void to__names_init(struct to_names *names, struct tb_mem *mem);
void to__names_fini(struct to_names *names); /* every name has been let go */

TB_MUST tb_rc to__name_hold(struct to_names *names, struct to_string text, struct to_name **out);
void to__name_let_go(struct to_names *names, struct to_name *name);
bool to__name_is(const struct to_name *name, struct to_string text);

#endif
