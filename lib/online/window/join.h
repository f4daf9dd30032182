/* SPDX-License-Identifier: Apache-2.0 */
/* Sums many sorted lists of words in one pass: each word is decoded and added once, however many lists there are.
 *
 * The lists' words of one series are added up in a table of all buckets, of which a bitmap says what is not zero.
 *
 * Memory    from mem, given back: 4 bytes a bucket. The answer: 8 bytes a word.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; the lists are as they were.
 */
#ifndef TO_WINDOW_JOIN_H
#define TO_WINDOW_JOIN_H

#include "online/window/buckets.h"

enum { TO_JOIN_LISTS = 72 };

struct to_join_list {
  const uint64_t *word; /* NULL: they are packed */
  const unsigned char *at, *end;
  size_t left;   /* words behind the one in next */
  uint64_t next; /* all ones: there is none */
};
struct to_join {
  struct to_join_list list[TO_JOIN_LISTS];
  size_t lists, words; /* words: of all */
};

void to_join_words(struct to_join *join, const struct to_words *words);
void to_join_runs(struct to_join *join, const struct to_runs *runs); /* NULL: none */
/* words: initialised, empty. TB_BUDGET: there are more than max, or a bucket's count needs several words; to_words_join() knows no
 * bound. */
TB_MUST tb_rc to_join_sum(struct to_join *join, size_t max, struct to_words *words);

#endif
