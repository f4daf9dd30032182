/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays: the room doubles, so that adding n items costs O(n).
 *
 *   TB_TRY(TB_GROW(list->items, list->room, list->n));
 *   list->items[list->n++] = item;
 *
 * Memory    from malloc(); the caller frees the array. tb_mem_grow(): from mem.
 * Errors    TB_NOMEM, and TB_BUDGET from tb_mem_grow(): array and room are unchanged.
 */
#ifndef TB_BASE_GROW_H
#define TB_BASE_GROW_H

#include "base/mem.h"

/* Makes room for n + 1 items. */
#define TB_GROW(array, room, n) tb_grow(&(array), &(room), (n) + 1, sizeof *(array))
#define TB_MEM_GROW(mem, array, room, n)                                                           \
  tb_mem_grow((mem), &(array), &(room), (n) + 1, sizeof *(array))

/* array: the address of the array's pointer. room and wanted count items. */
TB_MUST tb_rc tb_grow(void *array, size_t *room, size_t wanted, size_t item_bytes);
TB_MUST tb_rc tb_mem_grow(struct tb_mem *mem, void *array, size_t *room, size_t wanted,
                          size_t item_bytes);

#endif
