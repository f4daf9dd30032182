/* SPDX-License-Identifier: Apache-2.0 */
/* Sums many sorted lists of words in one pass: each word is decoded and added once, however many lists there are.
 *
 * The words of one series are added up in a table of all buckets with a bitmap of those that are not zero.
 *
 * Memory    from mem: 4 bytes a bucket, released at the end; 8 bytes a word for the result.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; the lists have not changed then.
 */
#ifndef TO_WINDOW_JOIN_H
#define TO_WINDOW_JOIN_H

#include "online/window/buckets.h"

enum { TO_JOIN_LISTS = 72 };

struct to_join_list {
  const uint64_t *word; /* NULL: the list is packed */
  const unsigned char *at, *end;
  size_t left;   /* words after next */
  uint64_t next; /* all ones: none left */
};
struct to_join {
  struct to_join_list list[TO_JOIN_LISTS];
  size_t lists, words; /* words: of all lists */
};

void to_join_words(struct to_join *join, const struct to_words *words);
void to_join_runs(struct to_join *join, const struct to_runs *runs); /* NULL: none */
/* Writes the sum to words, which must be initialised and empty. Returns TB_BUDGET if there are more than max words, or if a
 * count needs several words; to_words_join() has neither limit. */
TB_MUST tb_rc to_join_sum(struct to_join *join, size_t max, struct to_words *words);

#endif
