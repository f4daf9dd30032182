/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "collector/base/spsc_queue.h"

static void count_wakes(void *self) {
  atomic_fetch_add((atomic_ulong *)self, 1);
}

Test(queue, a_full_one_leaves_the_message_with_its_sender) {
  struct tc_spsc_queue *mb = calloc(1, sizeof *mb);
  atomic_ulong wakes = 0;
  int things[TC_SPSC_QUEUE_SLOTS];

  tc_spsc_queue_init(mb, count_wakes, &wakes);
  cr_assert_null(tc_spsc_queue_take(mb));
  for (int i = 0; i < TC_SPSC_QUEUE_SLOTS; i++) cr_assert(tc_spsc_queue_post(mb, &things[i]));
  cr_assert_not(tc_spsc_queue_post(mb, &things[0]));
  cr_assert_eq(wakes, TC_SPSC_QUEUE_SLOTS);
  cr_assert_eq(tc_spsc_queue_take(mb), &things[0]);
  cr_assert(tc_spsc_queue_post(mb, &things[0]));
  for (int i = 1; i < TC_SPSC_QUEUE_SLOTS; i++) cr_assert_eq(tc_spsc_queue_take(mb), &things[i]);
  cr_assert_eq(tc_spsc_queue_take(mb), &things[0]);
  cr_assert_null(tc_spsc_queue_take(mb));
  free(mb);
}

enum { MESSAGES = 200000 };

static void *send_all(void *self) {
  for (uintptr_t i = 1; i <= MESSAGES; i++)
    while (!tc_spsc_queue_post(self, (void *)i)) sched_yield();
  return NULL;
}

Test(queue, two_threads_see_every_message_once_and_in_order) {
  struct tc_spsc_queue *mb = calloc(1, sizeof *mb);
  atomic_ulong wakes = 0;
  pthread_t sender;

  tc_spsc_queue_init(mb, count_wakes, &wakes);
  pthread_create(&sender, NULL, send_all, mb);
  for (uintptr_t i = 1; i <= MESSAGES;) {
    void *msg = tc_spsc_queue_take(mb);

    if (msg == NULL) {
      sched_yield();
      continue;
    }
    cr_assert_eq((uintptr_t)msg, i);
    i++;
  }
  pthread_join(sender, NULL);
  cr_assert_null(tc_spsc_queue_take(mb));
  cr_assert_eq(wakes, MESSAGES);
  free(mb);
}
