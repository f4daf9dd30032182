/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for records between a connection and the disk.
 *
 * Records with a large batch are recycled through a small stock: a loop's thread allocates and a store's thread frees about a
 * thousand a second, and the allocator would return their pages to the system and fault them in again each time
 * (0.2 ms a MB).
 *
 * Memory    every record in use is counted, and charged to its quota until it is freed; the stock keeps up to
 *           TC_RECORDS_KEPT more.
 * Threads   any.
 * Errors    NULL if memory cannot be allocated.
 */
#ifndef TC_INGEST_RECORD_POOL_H
#define TC_INGEST_RECORD_POOL_H

#include "collector/ingest/quota.h"
#include "collector/store/store.h"

enum { TC_RECORDS_KEPT = 128 }; /* records of 66 KiB */

/* Sets len, quota, free and magic only. quota may be NULL. */
struct tc_record *tc_record_new(uint32_t len, struct tc_quota *quota);
void tc_record_free(struct tc_record *record); /* accepts NULL */

/* Wakes a loop whose connections wait for memory. */
struct tc_records_waiter {
  struct tc_records_waiter *next;
  void (*wake)(void *self); /* on the thread that frees a record */
  void *self;
  atomic_bool waits;
};

/* Between add and remove, the first record that is freed after wait calls wake(), once. */
void tc_records_waiter_add(struct tc_records_waiter *waiter);
void tc_records_waiter_remove(struct tc_records_waiter *waiter);
void tc_records_wait(struct tc_records_waiter *waiter);

/* Bytes of all records in use, in the whole process. */
size_t tc_records_held_bytes(void);

#endif
