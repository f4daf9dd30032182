/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of records on their way from a connection to the disk.
 *
 * A record with a large batch is taken from and given back to a small stock: such records are taken on a
 * loop's thread and freed on a store's, some thousand a second, and the allocator would give their pages
 * back to the system and fault them in again each time (0.2 ms a MB).
 *
 * Memory    every record in use is counted, and charged to its quota until it is freed; the stock holds up to
 *           TC_RECORDS_KEPT beside them.
 * Threads   any.
 * Errors    NULL: no memory.
 */
#ifndef TC_INGEST_RECORD_POOL_H
#define TC_INGEST_RECORD_POOL_H

#include "collector/ingest/quota.h"
#include "collector/store/store.h"

enum { TC_RECORDS_KEPT = 128 }; /* of 66 KiB */

/* len, quota, free and nothing else are set. quota may be NULL. */
struct tc_record *tc_record_new(uint32_t len, struct tc_quota *quota);
void tc_record_free(struct tc_record *record); /* accepts NULL */

/* Wakes a loop whose connections wait for memory. */
struct tc_records_waiter {
  struct tc_records_waiter *next;
  void (*wake)(void *self); /* on the thread that frees a record */
  void *self;
  atomic_bool waits;
};

/* After add, the next record that is freed after wait calls wake(), once. No call comes after remove. */
void tc_records_waiter_add(struct tc_records_waiter *waiter);
void tc_records_waiter_remove(struct tc_records_waiter *waiter);
void tc_records_wait(struct tc_records_waiter *waiter);

/* Bytes of all records in use, in the whole process. */
size_t tc_records_held_bytes(void);

#endif
