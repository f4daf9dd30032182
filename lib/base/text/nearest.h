/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known word that is nearest to what was typed, by the letters to insert, delete, replace or swap.
 *
 *   struct tb_nearest nearest = { .word = typed };
 *   for (each known name) tb_nearest_try(&nearest, name);
 *   if (nearest.best != NULL) ...
 *
 * Memory    best is one of the candidates, which stay the caller's.
 */
#ifndef TB_BASE_NEAREST_H
#define TB_BASE_NEAREST_H

#include <stddef.h>

struct tb_nearest {
  const char *word;
  const char *best; /* NULL: nothing is near enough; the first of several that are equally near */
  size_t distance;
};

/* SIZE_MAX: one of the words is too long for a slip of a finger. */
size_t tb_nearest_distance(const char *a, const char *b);
void tb_nearest_try(struct tb_nearest *nearest, const char *candidate);

#endif
