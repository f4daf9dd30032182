/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/nearest.h"

#include <stdint.h>
#include <string.h>

enum { WORD_MAX = 64 }; /* longer words are not typing errors */

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Computes the optimal string alignment distance: Levenshtein's with swaps of neighbours. */
static size_t distance_of(const char *a, size_t a_len, const char *b, size_t b_len) {
  size_t rows[3][WORD_MAX + 1];
  size_t *before = rows[0], *above = rows[1], *row = rows[2];

  for (size_t j = 0; j <= b_len; j++) above[j] = j;
  for (size_t i = 1; i <= a_len; i++) {
    row[0] = i;
    for (size_t j = 1; j <= b_len; j++) {
      row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = least(row[j], before[j - 2] + 1);
    }
    size_t *free_row = before;
    before = above;
    above = row;
    row = free_row;
  }
  return above[b_len];
}

size_t tb_nearest_distance(const char *a, const char *b) {
  size_t a_len = strlen(a), b_len = strlen(b);

  if (a_len > WORD_MAX || b_len > WORD_MAX) return SIZE_MAX;
  return distance_of(a, a_len, b, b_len);
}

/* Allows errors in a third of the letters, in one letter of a short word. */
static size_t limit_for(size_t len) {
  return len < 4 ? 1 : len / 3;
}

void tb_nearest_try(struct tb_nearest *nearest, const char *candidate) {
  size_t len = strlen(nearest->word), other = strlen(candidate);

  if (len == 0 || len > WORD_MAX || other > WORD_MAX) return;
  size_t distance = distance_of(nearest->word, len, candidate, other);
  size_t limit = nearest->best != NULL ? nearest->distance - 1 : limit_for(len);
  if (nearest->best != NULL && nearest->distance == 0) return;
  if (distance > limit) return;
  nearest->best = candidate;
  nearest->distance = distance;
}
