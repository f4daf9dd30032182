/* SPDX-License-Identifier: Apache-2.0 */
#include "online/window/join.h"

#include <assert.h>

enum { BUCKETS = 1 << TO_BUCKET_BITS, BITS = 64, UPPER = BUCKETS / BITS / BITS };
#define DONE UINT64_MAX /* no word has this key and this count */

/* Sums of one series. */
struct table {
  uint32_t count[BUCKETS];
  uint64_t bit[BUCKETS / BITS]; /* count is not 0 */
  uint64_t any[UPPER];          /* bit is not 0 */
};

static inline void next_word(struct to_join_list *list) {
  if (list->left == 0) {
    list->next = DONE;
    return;
  }
  list->left--;
  if (list->word != NULL)
    list->next = *list->word++;
  else
    list->next = to_runs_next(&list->at, list->end, to_word_key(list->next));
}

static void add_list(struct to_join *join, struct to_join_list list) {
  assert(join->lists < TO_JOIN_LISTS);
  join->words += list.left;
  next_word(&list);
  join->list[join->lists++] = list;
}

void to_join_words(struct to_join *join, const struct to_words *words) {
  if (words->n > 0) add_list(join, (struct to_join_list){ .word = words->word, .left = words->n });
}

void to_join_runs(struct to_join *join, const struct to_runs *runs) {
  if (runs == NULL || runs->words == 0) return;
  const unsigned char *at = (const unsigned char *)(runs + 1);
  add_list(join, (struct to_join_list){ .at = at, .end = at + runs->len, .left = runs->words });
}

/* Moves the lists with the lowest series to the front; returns how many. */
static size_t lowest_lists(struct to_join *join, uint32_t *series) {
  size_t n = 0;

  *series = TO_NO_SERIES;
  for (size_t i = 0; i < join->lists; i++) {
    struct to_join_list *list = &join->list[i];
    if (list->next == DONE) {
      *list = join->list[--join->lists];
      i--;
      continue;
    }
    uint32_t here = to_word_series(list->next);
    if (here > *series) continue;
    if (here < *series) n = 0;
    *series = here;
    struct to_join_list other = join->list[n];
    join->list[n++] = *list;
    *list = other;
  }
  return n;
}

static tb_rc put_word(struct to_words *words, uint32_t series, unsigned bucket, uint64_t count) {
  if (words->n == words->room) return TB_BUDGET;
  words->word[words->n++] =
      (uint64_t)series << (32 + TO_BUCKET_BITS) | (uint64_t)bucket << 32 | count;
  return TB_OK;
}

/* Copies the words of a series that occurs in no other list. */
static tb_rc copy_words(struct to_join_list *list, uint32_t series, struct to_words *words) {
  for (; list->next != DONE && to_word_series(list->next) == series; next_word(list)) {
    if (words->n == words->room) return TB_BUDGET;
    words->word[words->n++] = list->next;
  }
  return TB_OK;
}

static tb_rc add_up(struct table *table, struct to_join_list *list, uint32_t series) {
  for (; list->next != DONE && to_word_series(list->next) == series; next_word(list)) {
    unsigned bucket = to_word_bucket(list->next);
    uint32_t more = (uint32_t)list->next;
    if (TB_UNLIKELY(table->count[bucket] > UINT32_MAX - more)) return TB_BUDGET;
    table->count[bucket] += more;
    table->bit[bucket / BITS] |= UINT64_C(1) << bucket % BITS;
    table->any[bucket / BITS / BITS] |= UINT64_C(1) << bucket / BITS % BITS;
  }
  return TB_OK;
}

/* Writes the sums to words and clears the table. */
static tb_rc take_sums(struct table *table, uint32_t series, struct to_words *words) {
  for (unsigned u = 0; u < UPPER; u++)
    for (; table->any[u] != 0; table->any[u] &= table->any[u] - 1) {
      uint64_t *bit = &table->bit[u * BITS + (unsigned)__builtin_ctzll(table->any[u])];
      for (; *bit != 0; *bit &= *bit - 1) {
        unsigned bucket = (unsigned)(bit - table->bit) * BITS + (unsigned)__builtin_ctzll(*bit);
        TB_TRY(put_word(words, series, bucket, table->count[bucket]));
        table->count[bucket] = 0;
      }
    }
  return TB_OK;
}

static tb_rc sum_all(struct to_join *join, struct table *table, struct to_words *words) {
  uint32_t series;
  size_t n;

  while ((n = lowest_lists(join, &series)) > 0) {
    if (n == 1) {
      TB_TRY(copy_words(&join->list[0], series, words));
      continue;
    }
    for (size_t i = 0; i < n; i++) TB_TRY(add_up(table, &join->list[i], series));
    TB_TRY(take_sums(table, series, words));
  }
  return TB_OK;
}

tb_rc to_join_sum(struct to_join *join, size_t max, struct to_words *words) {
  size_t room = join->words < max ? join->words : max;
  struct table *table;

  TB_TRY(tb_mem_alloc(words->mem, sizeof(*table), &table));
  tb_rc rc = to_words_reserve(words, room);
  if (rc == TB_OK) rc = sum_all(join, table, words);
  if (rc == TB_OK) rc = to_words_shrink(words);
  tb_mem_free(words->mem, table, sizeof(*table));
  if (rc != TB_OK) to_words_fini(words);
  return rc;
}
