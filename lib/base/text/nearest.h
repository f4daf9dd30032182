/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known word nearest to the typed one, by the letters to insert, delete, replace or swap.
 *
 *   struct tb_nearest nearest = { .word = typed };
 *   for (each known name) tb_nearest_try(&nearest, name);
 *   if (nearest.best != NULL) ...
 *
 * Memory    best points to one of the candidates, which belong to the caller.
 */
#ifndef TB_BASE_NEAREST_H
#define TB_BASE_NEAREST_H

#include <stddef.h>

struct tb_nearest {
  const char *word;
  const char *best; /* the first of equally near candidates; NULL: none is near enough */
  size_t distance;
};

/* Returns SIZE_MAX if one of the words is longer than 64 bytes. */
size_t tb_nearest_distance(const char *a, const char *b);
void tb_nearest_try(struct tb_nearest *nearest, const char *candidate);

#endif
