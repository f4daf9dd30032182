/* SPDX-License-Identifier: Apache-2.0 */
/* A table of texts: each text once. Number 0 is the empty text.
 *
 * Memory from mem: each text, and 32 bytes.
 * Threads use each object from one thread at a time.
 * Errors TB_BUDGET, TB_NOMEM. */
#ifndef TO_SCENE_TEXTS_H
#define TO_SCENE_TEXTS_H

#include "base/map.h"
#include "online/event/generation.h"

struct to_texts {
  struct tb_mem *mem;
  struct tb_map by_hash;
  struct to_string *name; /* by number */
  size_t n, room;
};

void to_texts_init(struct to_texts *names, struct tb_mem *mem);
void to_texts_fini(struct to_texts *names);
TB_MUST tb_rc to_texts_add(struct to_texts *names, struct to_string text, uint32_t *out);
/* Returns a text that is lent as long as the object. */
static inline struct to_string to_texts_text(const struct to_texts *names, uint32_t number) {
  return number < names->n ? names->name[number] : (struct to_string){ "", 0 };
}

#endif
