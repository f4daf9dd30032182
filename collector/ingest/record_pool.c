/* SPDX-License-Identifier: Apache-2.0 */
/* The stock is an array of places, each NULL or with a record. A thread owns a record after it exchanged it for NULL. `next` is
 * only a hint where to begin the search, so that the record freed last, which a cache may still have, is taken first. */
#include "collector/ingest/record_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A batch with its header has at most 64 KiB + 41 bytes. A record of at least half of STOCK_BYTES is large. */
enum { STOCK_BYTES = 66 << 10, LARGE_BYTES = STOCK_BYTES / 2 };

/* One number for the whole process, because the store's threads may free a record after its connection is closed. */
static atomic_size_t held_bytes;
static _Atomic(struct tc_record *) stock[TC_RECORDS_KEPT];
static atomic_uint next;

static pthread_mutex_t waiters_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tc_records_waiter *waiters;
static atomic_bool has_waiters; /* false: free records without the lock */

size_t tc_records_held_bytes(void) {
  return atomic_load_explicit(&held_bytes, memory_order_relaxed);
}

static bool is_of_stock(size_t bytes) {
  return bytes >= LARGE_BYTES && bytes <= STOCK_BYTES;
}

static struct tc_record *take_stock(void) {
  unsigned at = atomic_load_explicit(&next, memory_order_relaxed);

  for (unsigned tries = 0; tries < TC_RECORDS_KEPT; tries++) {
    _Atomic(struct tc_record *) *place = &stock[--at % TC_RECORDS_KEPT];
    if (atomic_load_explicit(place, memory_order_relaxed) == NULL) continue;
    struct tc_record *record = atomic_exchange_explicit(place, NULL, memory_order_acquire);
    if (record == NULL) continue;
    atomic_store_explicit(&next, at, memory_order_relaxed);
    return record;
  }
  return NULL;
}

static bool put_stock(struct tc_record *record) {
  unsigned at = atomic_load_explicit(&next, memory_order_relaxed);

  for (unsigned tries = 0; tries < TC_RECORDS_KEPT; tries++, at++) {
    struct tc_record *empty = NULL;
    if (!atomic_compare_exchange_strong_explicit(&stock[at % TC_RECORDS_KEPT], &empty, record,
                                                 memory_order_release, memory_order_relaxed))
      continue;
    atomic_store_explicit(&next, at + 1, memory_order_relaxed);
    return true;
  }
  return false;
}

void tc_records_waiter_add(struct tc_records_waiter *waiter) {
  atomic_init(&waiter->waits, false);
  pthread_mutex_lock(&waiters_lock);
  waiter->next = waiters;
  waiters = waiter;
  pthread_mutex_unlock(&waiters_lock);
}

void tc_records_waiter_remove(struct tc_records_waiter *waiter) {
  struct tc_records_waiter **at = &waiters;

  pthread_mutex_lock(&waiters_lock);
  while (*at != NULL && *at != waiter) at = &(*at)->next;
  if (*at != NULL) *at = waiter->next;
  pthread_mutex_unlock(&waiters_lock);
}

void tc_records_wait(struct tc_records_waiter *waiter) {
  if (atomic_exchange(&waiter->waits, true)) return;
  atomic_store(&has_waiters, true);
}

static void wake_waiters(void) {
  pthread_mutex_lock(&waiters_lock);
  for (struct tc_records_waiter *w = waiters; w != NULL; w = w->next)
    if (atomic_exchange(&w->waits, false)) w->wake(w->self);
  pthread_mutex_unlock(&waiters_lock);
}

struct tc_record *tc_record_new(uint32_t len, struct tc_quota *quota) {
  size_t bytes = sizeof(struct tc_record) + len;
  struct tc_record *record = is_of_stock(bytes) ? take_stock() : NULL;

  if (record == NULL) record = malloc(is_of_stock(bytes) ? STOCK_BYTES : bytes);
  if (record == NULL) return NULL;
  atomic_fetch_add_explicit(&held_bytes, bytes, memory_order_relaxed);
  if (quota != NULL) atomic_fetch_add_explicit(&quota->record_bytes, bytes, memory_order_relaxed);
  *record = (struct tc_record){
    .free = tc_record_free, .len = len, .quota = quota, .magic = TC_RECORD_MAGIC
  };
  return record;
}

void tc_record_free(struct tc_record *record) {
  if (record == NULL) return;
  TB_MAGIC_END(record, TC_RECORD_MAGIC);
  size_t bytes = sizeof *record + record->len;
  atomic_fetch_sub_explicit(&held_bytes, bytes, memory_order_relaxed);
  /* Subtract the bytes last: a quota without bytes may be freed. */
  if (record->is_job) tc_job_done(record->quota);
  if (record->quota != NULL)
    atomic_fetch_sub_explicit(&record->quota->record_bytes, bytes, memory_order_release);
  if (!is_of_stock(bytes) || !put_stock(record)) free(record);
  /* Either the waiter sees this record's bytes released, or this thread sees has_waiters. */
  atomic_thread_fence(memory_order_seq_cst);
  if (atomic_load(&has_waiters) && atomic_exchange(&has_waiters, false)) wake_waiters();
}
