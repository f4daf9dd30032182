/* SPDX-License-Identifier: Apache-2.0 */
#include "online/event/names.h"

#include <string.h>

#include "base/hash.h"

void to__names_init(struct to_names *names, struct tb_mem *mem) {
  *names = (struct to_names){ .mem = mem };
  tb_map_init(&names->by_hash, mem, tb_seed());
}

static void free_name(struct to_names *names, struct to_name *name) {
  tb_mem_free(names->mem, name, sizeof *name + name->len);
}

void to__names_fini(struct to_names *names) {
  while (names->n_unheld > 0) free_name(names, names->unheld[--names->n_unheld]);
  tb_map_fini(&names->by_hash);
}

static void set_unheld(struct to_names *names, unsigned place, struct to_name *name) {
  names->unheld[place] = name;
  name->place = (uint8_t)place;
}

static void hold_again(struct to_names *names, struct to_name *name) {
  if (name->holders++ == 0) set_unheld(names, name->place, names->unheld[--names->n_unheld]);
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
      hold_again(names, have);
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
      free_name(names, name);
      return rc;
    }
    *place = (uintptr_t)name;
  }
  *out = name;
  return TB_OK;
}

void to__name_release(struct to_names *names, struct to_name *name) {
  if (--name->holders > 0) return;
  if (!name->listed) {
    free_name(names, name);
    return;
  }
  if (names->n_unheld < TO_NAMES_UNHELD) {
    set_unheld(names, names->n_unheld++, name);
    return;
  }
  unsigned place = names->oldest++ % TO_NAMES_UNHELD;
  (void)tb_map_remove(&names->by_hash, names->unheld[place]->hash);
  free_name(names, names->unheld[place]);
  set_unheld(names, place, name);
}
