/* SPDX-License-Identifier: Apache-2.0 */
#include "online/scene/texts.h"

#include <string.h>

#include "base/grow.h"
#include "base/hash.h"

void to_texts_init(struct to_texts *names, struct tb_mem *mem) {
  *names = (struct to_texts){ .mem = mem };
  tb_map_init(&names->by_hash, mem, tb_seed());
}

void to_texts_fini(struct to_texts *names) {
  for (size_t i = 0; i < names->n; i++)
    tb_mem_free(names->mem, (void *)(uintptr_t)names->name[i].data, names->name[i].len);
  tb_mem_free(names->mem, names->name, names->room * sizeof *names->name);
  tb_map_fini(&names->by_hash);
}

static tb_rc copy_text(struct to_texts *names, struct to_string text) {
  char *copy = NULL;

  TB_TRY(TB_MEM_GROW(names->mem, names->name, names->room, names->n));
  if (text.len > 0) {
    TB_TRY(tb_mem_alloc(names->mem, text.len, &copy));
    memcpy(copy, text.data, text.len);
  }
  names->name[names->n++] = (struct to_string){ copy, text.len };
  return TB_OK;
}

static bool are_equal(struct to_string a, struct to_string b) {
  return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Texts with the same hash are stored under the next hashes. */
tb_rc to_texts_add(struct to_texts *names, struct to_string text, uint32_t *out) {
  uint64_t hash = tb_hash(TB_HASH_START, text.data, text.len), *number;
  bool is_fresh;

  *out = 0;
  if (names->n == 0) TB_TRY(copy_text(names, (struct to_string){ "", 0 }));
  if (text.len == 0) return TB_OK;
  for (;; hash++) {
    TB_TRY(tb_map_put(&names->by_hash, hash, &number, &is_fresh));
    if (is_fresh) break;
    if (are_equal(names->name[*number], text)) {
      *out = (uint32_t)*number;
      return TB_OK;
    }
  }
  *number = names->n;
  tb_rc rc = copy_text(names, text);
  if (rc != TB_OK) {
    (void)tb_map_remove(&names->by_hash, hash);
    return rc;
  }
  *out = (uint32_t)*number;
  return TB_OK;
}
