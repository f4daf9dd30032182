/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "collector/base/spsc_queue.h"
#include "collector/ingest/record_pool.h"

enum { LARGE = 64 << 10, MANY = 3 * TC_RECORDS_KEPT, ROUNDS = 50000 };

Test(record, what_is_in_use_is_counted_and_comes_back_to_nothing) {
  struct tc_record *small = tc_record_new(100, NULL), *large = tc_record_new(LARGE, NULL);

  cr_assert_eq(tc_records_held_bytes(), 2 * sizeof(struct tc_record) + 100 + LARGE);
  memset(large->payload, 1, LARGE);
  small->free(small);
  large->free(large);
  cr_assert_eq(tc_records_held_bytes(), 0);
  tc_record_free(NULL);
}

Test(record, the_large_one_freed_last_is_taken_first) {
  struct tc_record *a = tc_record_new(LARGE, NULL), *b = tc_record_new(LARGE - 1000, NULL);

  cr_assert_neq(a, b);
  tc_record_free(a);
  tc_record_free(b);
  cr_assert_eq(tc_record_new(LARGE, NULL), b);
  cr_assert_eq(tc_record_new(LARGE - 5, NULL), a);
  tc_record_free(a);
  tc_record_free(b);
}

Test(record, more_than_the_stock_keeps_go_to_the_allocator) {
  static struct tc_record *all[MANY];

  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < MANY; i++) {
      all[i] = tc_record_new(LARGE, NULL);
      cr_assert_not_null(all[i]);
      memset(all[i]->payload, i, LARGE);
    }
    for (int i = 0; i < MANY; i++) {
      cr_assert_eq(all[i]->payload[LARGE - 1], (unsigned char)i, "no two share their memory");
      tc_record_free(all[i]);
    }
  }
  cr_assert_eq(tc_records_held_bytes(), 0);
}

static void no_wake(void *self) {
  (void)self;
}

/* Plays the store: checks and frees the records that the other thread filled. */
static void *store_thread(void *arg) {
  struct tc_spsc_queue *box = arg;

  for (unsigned i = 0; i < ROUNDS;) {
    struct tc_record *record = tc_spsc_queue_take(box);
    if (record == NULL) {
      sched_yield();
      continue;
    }
    cr_assert_eq(record->payload[0], (unsigned char)i);
    cr_assert_eq(record->payload[record->len - 1], (unsigned char)i);
    record->free(record);
    i++;
  }
  return NULL;
}

static void *loop_thread(void *arg) {
  struct tc_spsc_queue *box = arg;

  for (unsigned i = 0; i < ROUNDS; i++) {
    struct tc_record *record = tc_record_new(LARGE - i % 20000, NULL);
    record->payload[0] = record->payload[record->len - 1] = (unsigned char)i;
    while (!tc_spsc_queue_post(box, record)) sched_yield();
  }
  return NULL;
}

Test(record, loops_take_what_the_store_frees) {
  static struct tc_spsc_queue boxes[2];
  pthread_t threads[4];

  for (int i = 0; i < 2; i++) {
    tc_spsc_queue_init(&boxes[i], no_wake, NULL);
    cr_assert_eq(pthread_create(&threads[2 * i], NULL, loop_thread, &boxes[i]), 0);
    cr_assert_eq(pthread_create(&threads[2 * i + 1], NULL, store_thread, &boxes[i]), 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  cr_assert_eq(tc_records_held_bytes(), 0);
}
