/* SPDX-License-Identifier: Apache-2.0 */
#include "online/event/names.h"

#include <string.h>

#include "base/hash.h"

void to__names_init(struct to_names *names, struct tb_mem *mem) {
  *names = (struct to_names){ .mem = mem };
  tb_map_init(&names->by_hash, mem, tb_seed());
}

void to__names_fini(struct to_names *names) {
  tb_map_fini(&names->by_hash);
}

static uint64_t hash_text(const struct to_names *names, struct to_string text) {
  return tb_hash(names->by_hash.seed, text.data, text.len);
}

bool to__name_is(const struct to_name *name, struct to_string text) {
  return name->len == text.len && memcmp(name->text, text.data, text.len) == 0;
}

tb_rc to__name_hold(struct to_names *names, struct to_string text, struct to_name **out) {
  uint64_t hash = hash_text(names, text), *place;
  const uint64_t *found = tb_map_find(&names->by_hash, hash);
  void *block = NULL;

  if (found != NULL) {
    struct to_name *have = (struct to_name *)(uintptr_t)*found;
    if (have->holders < UINT32_MAX && to__name_is(have, text)) {
      have->holders++;
      *out = have;
      return TB_OK;
    }
  }
  TB_TRY(tb_mem_resize(names->mem, &block, 0, sizeof(struct to_name) + text.len));
  struct to_name *name = block;
  *name = (struct to_name){
    .hash = hash, .holders = 1, .len = (uint32_t)text.len, .listed = found == NULL
  };
  memcpy(name->text, text.data, text.len);
  if (name->listed) {
    tb_rc rc = tb_map_put(&names->by_hash, hash, &place, NULL);
    if (rc != TB_OK) {
      tb_mem_free(names->mem, name, sizeof *name + name->len);
      return rc;
    }
    *place = (uintptr_t)name;
  }
  *out = name;
  return TB_OK;
}

void to__name_release(struct to_names *names, struct to_name *name) {
  if (--name->holders > 0) return;
  if (name->listed) tb_map_remove(&names->by_hash, name->hash);
  tb_mem_free(names->mem, name, sizeof *name + name->len);
}
