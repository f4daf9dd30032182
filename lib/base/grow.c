/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4 };

static size_t next_room(size_t room, size_t wanted) {
  size_t next = room == 0 ? FIRST_ROOM : 2 * room;

  return next < wanted ? wanted : next;
}

tb_rc tb_grow(void *array, size_t *room, size_t wanted, size_t item_bytes) {
  void *items;

  if (wanted <= *room) return TB_OK;
  size_t next = next_room(*room, wanted);
  memcpy(&items, array, sizeof items);
  items = reallocarray(items, next, item_bytes);
  if (items == NULL) return TB_NOMEM;
  memcpy(array, &items, sizeof items);
  *room = next;
  return TB_OK;
}

tb_rc tb_mem_grow(struct tb_mem *mem, void *array, size_t *room, size_t wanted, size_t item_bytes) {
  void *items;

  if (wanted <= *room) return TB_OK;
  size_t next = next_room(*room, wanted);
  memcpy(&items, array, sizeof items);
  TB_TRY(tb_mem_resize(mem, &items, *room * item_bytes, next * item_bytes));
  memcpy(array, &items, sizeof items);
  *room = next;
  return TB_OK;
}
